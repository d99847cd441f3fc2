"""docs/tools.md tells of every tool what a model is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools.registry import Tool, registry

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tools.md"


def section(tool: Tool) -> str:
    """What the page must say of ``tool``: paste it there when this test fails."""
    lines = [f"### `{tool.name}`", "", f"Effect: {tool.effect}.", "", tool.spec.description]
    parameters: dict[str, Any] = dict(tool.spec.parameters)
    properties = parameters["properties"]
    if properties:
        lines += ["", "| argument | type | default | |", "|---|---|---|---|"]
    for name, schema in properties.items():
        default = "required" if name in parameters.get("required", ()) else "none"
        if "default" in schema:
            default = f"`{json.dumps(schema['default'], ensure_ascii=False)}`"
        cells = [f"`{name}`", kind(schema), default, limits(schema)]
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {kind(schema['items'])}"
    if "anyOf" in schema:
        return " or ".join(kind(branch) for branch in schema["anyOf"])
    if "const" in schema:
        return f"`{schema['const']}`"
    return str(schema.get("format") or schema.get("type", "any"))


def limits(schema: dict[str, Any]) -> str:
    words = {"minimum": "at least", "maximum": "at most", "maxLength": "at most, in characters,"}
    found = [f"{word} {schema[key]}" for key, word in words.items() if key in schema]
    sentence = ", ".join(found).capitalize()
    return " ".join(filter(None, [schema.get("description", ""), sentence and f"{sentence}."]))


@pytest.mark.parametrize("tool", registry.tools(), ids=lambda tool: tool.name)
def test_page_tells_what_the_model_is_told(tool):
    assert section(tool) in PAGE.read_text()


def test_page_tells_of_no_tool_that_is_gone():
    headings = [line for line in PAGE.read_text().splitlines() if line.startswith("### ")]
    assert headings == [f"### `{name}`" for name in registry.names()]
