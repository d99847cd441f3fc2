from typing import Any

import pytest
from django.core.checks import run_checks

from tools.definitions import ToolContext, ToolSpec
from tools.registry import Tool, registry
from tools.signature import Signature


def nothing(context: ToolContext) -> str:
    return ""


def sample(**changes: Any) -> Tool:
    spec = ToolSpec(
        name=changes.pop("name", "sample"),
        description=changes.pop("description", "Do something."),
        parameters=changes.pop("parameters", {"type": "object", "properties": {}}),
    )
    options: dict[str, Any] = {"effect": "read", **changes}
    return Tool(
        spec=spec,
        implementation=nothing,
        signature=Signature(nothing),
        origin="sample.tools.nothing",
        **options,
    )


def faults(*tools: Tool) -> list[str | None]:
    with registry.temporarily(*tools, alone=True):
        return [message.id for message in run_checks(tags=["tools"])]


def test_checks_pass_over_a_sound_tool():
    assert faults(sample()) == []


def test_checks_pass_over_the_tools_of_this_product():
    assert run_checks(tags=["tools"]) == []


@pytest.mark.parametrize(
    "name", ["Weather (Berlin)", "calendar.read", "x" * 65, "日本語", "", "a\n", "größe"]
)
def test_checks_refuse_a_name_that_providers_refuse(name):
    assert faults(sample(name=name)) == ["tools.E001"]


@pytest.mark.parametrize("name", ["a", "note_create", "server__tool", "x" * 64, "A-1"])
def test_checks_take_names_that_providers_take(name):
    assert faults(sample(name=name)) == []


@pytest.mark.parametrize("description", ["", "  \n"])
def test_checks_refuse_a_tool_without_a_description(description):
    assert faults(sample(description=description)) == ["tools.E002"]


@pytest.mark.parametrize("parameters", [{}, {"type": "string"}, {"type": "array"}])
def test_checks_refuse_a_schema_that_is_not_an_objects(parameters):
    assert faults(sample(parameters=parameters)) == ["tools.E003"]


def test_checks_refuse_an_effect_that_policy_does_not_know():
    assert faults(sample(effect="harmless")) == ["tools.E004"]


@pytest.mark.parametrize("deadline", [0, -1])
def test_checks_refuse_a_tool_without_time(deadline):
    assert faults(sample(deadline=deadline)) == ["tools.E005"]


def test_checks_say_where_the_tool_is():
    with registry.temporarily(sample(description=""), alone=True):
        (message,) = run_checks(tags=["tools"])
    assert message.obj == "sample.tools.nothing"


@pytest.mark.parametrize("value", ["sample", "sample=maybe", "sample=ask,sample=off"])
def test_checks_refuse_a_policy_that_does_not_parse(settings, value):
    settings.NOTEWIRE_TOOL_POLICY = value
    assert faults(sample()) == ["tools.E006"]


def test_checks_refuse_a_policy_for_what_is_neither_tool_nor_effect(settings):
    settings.NOTEWIRE_TOOL_POLICY = "sampel=ask,external=off,sample=off,writes=ask"
    assert faults(sample()) == ["tools.E007", "tools.E007"]
