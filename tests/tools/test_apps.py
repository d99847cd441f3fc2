import math
import re
import sys
from pathlib import Path

import pytest
from django.apps import AppConfig, apps
from django.core.checks import run_checks

from tools.definitions import ToolContext
from tools.exceptions import AlreadyRegistered
from tools.invocation import invoke
from tools.policy import Policy
from tools.registry import registry

CONTRIBUTING = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
TOOL = '''
from tools.definitions import ToolContext
from tools.registry import tool


@tool(effect="read")
def shout(context: ToolContext, text: str) -> str:
    """Say it in capital letters."""
    return text.upper()
'''


@pytest.fixture
def start_with(tmp_path, monkeypatch):
    """Start up with one more app, whose ``tools`` module is ``source`` (None: it has none)."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def start(name: str, source: str | None) -> None:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").touch()
        if source is not None:
            (folder / "tools.py").write_text(source)
        monkeypatch.setitem(apps.app_configs, name, AppConfig.create(name))
        apps.get_app_config("tools").ready()

    with registry.temporarily():
        yield start
    for module in set(sys.modules) - before:
        if module.split(".")[0].startswith("sample_"):
            del sys.modules[module]


async def test_adding_a_tool_is_one_decorated_function_in_one_file(start_with):
    """The file is the one that CONTRIBUTING.md shows."""
    (example,) = re.findall(r"```python\n(.*?)```", CONTRIBUTING.read_text(), re.DOTALL)
    start_with("sample_counting", example)
    (spec,) = [spec for spec in registry.definitions() if spec.name == "word_count"]
    assert spec.description == "Count the words of a text."
    assert spec.parameters == {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The text to count in."}},
        "required": ["text"],
        "additionalProperties": False,
    }
    assert run_checks(tags=["tools"]) == []
    outcome = await invoke(
        name="word_count",
        arguments='{"text": "one two three"}',
        context=ToolContext(user_id=1, deadline=math.inf),
        policy=Policy(),
    )
    assert (outcome.content, outcome.status) == ('{"words":3}', "done")


def test_discovery_skips_an_app_without_tools(start_with):
    before = registry.names()
    start_with("sample_plain", None)
    assert registry.names() == before


@pytest.mark.parametrize("broken", ["1 / 0", "import module_that_is_not_there"])
def test_discovery_raises_and_restores_the_registry_when_a_module_is_broken(start_with, broken):
    before = registry.names()
    with pytest.raises((ZeroDivisionError, ModuleNotFoundError)):
        start_with("sample_broken", f"{TOOL}\n\n{broken}\n")
    assert registry.names() == before


def test_discovery_names_both_places_when_two_apps_claim_one_name(start_with):
    start_with("sample_first", TOOL)
    with pytest.raises(AlreadyRegistered) as caught:
        start_with("sample_second", TOOL)
    assert "sample_first.tools.shout" in str(caught.value)
    assert "sample_second.tools.shout" in str(caught.value)
    assert "shout" in registry.names()


def test_current_time_is_there_from_the_start():
    assert "current_time" in registry.names()
