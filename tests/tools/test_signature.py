from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from tools.definitions import ToolContext
from tools.exceptions import ToolError
from tools.signature import Signature


class Mode(StrEnum):
    APPEND = "append"
    EDIT = "edit"


class Point(BaseModel):
    title: str
    mode: Mode = Mode.EDIT


class Tree(BaseModel):
    children: list["Tree"] = []


def schema(function) -> dict[str, Any]:
    return Signature(function).schema()


def test_schema_of_a_tool_without_arguments_is_an_empty_closed_object():
    def nothing(context: ToolContext) -> None: ...

    assert schema(nothing) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_schema_tells_types_descriptions_defaults_and_what_is_required():
    def sample(
        context: ToolContext,
        note_id: UUID,
        title: Annotated[str, Field(description="What it is called.", max_length=500)],
        mode: Mode = Mode.APPEND,
        order: Literal["asc", "desc"] = "asc",
        tags: tuple[str, ...] = (),
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> None: ...

    assert schema(sample) == {
        "type": "object",
        "properties": {
            "note_id": {"type": "string", "format": "uuid"},
            "title": {"type": "string", "description": "What it is called.", "maxLength": 500},
            "mode": {"type": "string", "enum": ["append", "edit"], "default": "append"},
            "order": {"type": "string", "enum": ["asc", "desc"], "default": "asc"},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
        },
        "required": ["note_id", "title"],
        "additionalProperties": False,
    }


def test_schema_of_an_optional_argument_has_no_null_branch():
    def sample(
        context: ToolContext,
        since: Annotated[date | None, Field(description="Not before.")] = None,
    ) -> None: ...

    assert schema(sample)["properties"] == {
        "since": {"type": "string", "format": "date", "description": "Not before."}
    }
    assert Signature(sample).bind({"since": None}) == {"since": None}


def test_schema_keeps_a_null_that_means_something():
    def sample(context: ToolContext, parent: int | None, depth: int | None = 3) -> None: ...

    branches = [{"type": "integer"}, {"type": "null"}]
    assert schema(sample)["properties"] == {
        "parent": {"anyOf": branches},
        "depth": {"anyOf": branches, "default": 3},
    }


def test_schema_holds_no_titles_and_no_references():
    def sample(context: ToolContext, title: str, points: list[Point]) -> None: ...

    found = schema(sample)
    assert found["properties"]["title"] == {"type": "string"}
    assert found["properties"]["points"]["items"] == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "mode": {"type": "string", "enum": ["append", "edit"], "default": "edit"},
        },
        "required": ["title"],
    }
    assert "$" not in str(found)


def test_schema_keeps_titles_that_are_data():
    def sample(context: ToolContext, value: dict[str, str] = {"title": "x"}) -> None: ...  # noqa: B006

    with pytest.raises(ValueError, match="mutable default"):
        schema(sample)

    def other(
        context: ToolContext,
        value: Annotated[dict[str, str], Field(examples=[{"title": "x"}])],
    ) -> None: ...

    assert schema(other)["properties"]["value"]["examples"] == [{"title": "x"}]


def test_schema_refuses_a_type_that_contains_itself():
    def sample(context: ToolContext, tree: Tree) -> None: ...

    with pytest.raises(TypeError, match="Tree contains itself"):
        schema(sample)


@pytest.mark.parametrize("name", ["schema", "copy", "json", "_hidden", "model_config", "self"])
def test_signature_takes_any_argument_name(name):
    namespace: dict[str, Any] = {"ToolContext": ToolContext}
    exec(f"def sample(context: ToolContext, {name}: int) -> None: ...", namespace)  # noqa: S102
    signature = Signature(namespace["sample"])
    assert signature.schema()["required"] == [name]
    assert signature.bind({name: 3}) == {name: 3}


def test_signature_refuses_what_no_schema_can_tell():
    def no_context() -> None: ...

    def untyped(context: ToolContext, number) -> None: ...

    def open_ended(context: ToolContext, *numbers: int) -> None: ...

    for function, words in (
        (no_context, "takes no context"),
        (untyped, "argument number .* has no type"),
        (open_ended, r"takes \*numbers"),
    ):
        with pytest.raises(TypeError, match=words):
            Signature(function)


def sample(
    context: ToolContext, note_id: UUID, mode: Mode, tags: tuple[str, ...] = ("a",), size: float = 1
) -> None: ...


ID = "00000000-0000-0000-0000-000000000001"


def test_bind_gives_the_values_that_the_function_takes():
    bound = Signature(sample).bind({"note_id": ID, "mode": "edit", "tags": ["x", "y"]})
    assert bound == {"note_id": UUID(ID), "mode": Mode.EDIT, "tags": ("x", "y"), "size": 1}


def refusal(arguments: dict[str, Any]) -> str:
    with pytest.raises(ToolError) as caught:
        Signature(sample).bind(arguments)
    return str(caught.value)


def test_bind_says_what_may_be_chosen():
    assert "- mode: Input should be 'append' or 'edit'" in refusal({"note_id": ID, "mode": "x"})


def test_bind_says_where_inside_a_value_the_fault_is():
    assert "- tags.1: Input should be a valid string" in refusal(
        {"note_id": ID, "mode": "edit", "tags": ["a", 5]}
    )


@pytest.mark.parametrize("size", [float("inf"), float("nan")])
def test_bind_refuses_numbers_that_json_does_not_know(size):
    assert "- size: Input should be a finite number" in refusal(
        {"note_id": ID, "mode": "edit", "size": size}
    )


def test_bind_stays_short_however_many_faults_there_are():
    arguments = {f"{'x' * 10_000}{number}": 1 for number in range(1_000)}
    words = refusal({"note_id": ID, "mode": "edit", **arguments})
    assert words.endswith("and 990 more")
    assert len(words) < 4_000
