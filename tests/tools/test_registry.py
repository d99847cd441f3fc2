import pytest
from django.core.exceptions import ImproperlyConfigured

from tools.definitions import Preview, ToolContext
from tools.exceptions import AlreadyRegistered
from tools.policy import Policy
from tools.registry import MAX_DEFINITIONS, registry, tool


@pytest.fixture(autouse=True)
def empty_registry():
    with registry.temporarily(alone=True):
        yield


def register(name: str = "sample", **options) -> None:
    def function(context: ToolContext) -> str:
        """Do something."""
        return ""

    function.__name__ = name
    tool(**{"effect": "read", **options})(function)


def test_tool_keeps_the_function_callable():
    @tool(effect="read")
    def double(context: ToolContext, number: int) -> str:
        """Double."""
        return str(number * 2)

    assert double(ToolContext(user_id=1, deadline=0), number=4) == "8"


def test_tool_keeps_its_options():
    def preview(context: ToolContext) -> Preview:
        return Preview("Do it.")

    register(effect="external", preview=preview, repeatable=True, deadline=2.5)
    found = registry.get("sample")
    assert found is not None
    assert (found.effect, found.preview, found.repeatable, found.deadline) == (
        "external",
        preview,
        True,
        2.5,
    )


def test_get_gives_none_for_an_unknown_name():
    assert registry.get("nothing") is None


def test_has_tools_is_false_when_nothing_is_registered():
    assert not registry.has_tools
    register()
    assert registry.has_tools


def test_names_and_definitions_are_in_one_stable_order():
    for name in ("beta", "alpha", "gamma"):
        register(name)
    assert registry.names() == ("alpha", "beta", "gamma")
    assert [spec.name for spec in registry.definitions()] == ["alpha", "beta", "gamma"]


def test_definitions_leave_out_what_is_switched_off():
    register("alpha")
    register("beta", effect="external")
    register("gamma", effect="write")
    policy = Policy(ceiling={"external": "off", "gamma": "ask"})
    assert [spec.name for spec in registry.definitions(policy)] == ["alpha", "gamma"]


def test_definitions_stop_at_what_providers_take_and_say_so(caplog):
    for number in range(MAX_DEFINITIONS + 1):
        register(f"tool_{number:03}")
    specs = registry.definitions()
    assert len(specs) == MAX_DEFINITIONS
    assert "tool_128" in caplog.text


def test_register_names_both_places_when_a_name_comes_twice():
    def one() -> None:
        register("same")

    def other():
        @tool(effect="read")
        def same(context: ToolContext) -> str:
            """The other one."""
            return ""

    one()
    with pytest.raises(AlreadyRegistered) as caught:
        other()
    message = str(caught.value)
    assert "'same'" in message
    assert message.count(__file__) == 2
    assert "register.<locals>.function" in message
    assert "other.<locals>.same" in message
    assert isinstance(caught.value, ImproperlyConfigured)
    (kept,) = registry.tools()
    assert kept.spec.description == "Do something."


def test_temporarily_puts_back_what_was_there_also_after_an_error():
    register("kept")
    with pytest.raises(KeyError), registry.temporarily():
        register("gone")
        assert registry.names() == ("gone", "kept")
        raise KeyError
    assert registry.names() == ("kept",)


def test_temporarily_registers_given_tools():
    register("sample")
    (sample,) = registry.tools()
    with registry.temporarily(alone=True):
        assert registry.names() == ()
        with registry.temporarily(sample):
            assert registry.get("sample") is sample
        assert registry.names() == ()
