"""A tool's signature as JSON Schema, and arguments checked against it.

pydantic does both; this module takes the noise out of the schema (titles, references, the null
branch of an optional argument) and words the errors for a model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, make_dataclass
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from tools.exceptions import ArgumentsError

SHOWN_ERRORS = 10


class Signature:
    """The arguments a function takes after its context."""

    def __init__(self, function: Callable[..., object]) -> None:
        fields = _fields(function)
        namespace = {"__pydantic_config__": ConfigDict(extra="forbid", allow_inf_nan=False)}
        shape = make_dataclass(function.__name__, fields, kw_only=True, namespace=namespace)
        self._names = tuple(name for name, *_ in fields)
        self._adapter: TypeAdapter[Any] = TypeAdapter(shape)

    def schema(self) -> dict[str, object]:
        raw = self._adapter.json_schema()
        schema = _plain(raw, raw.get("$defs", {}), ())
        return {"properties": {}, **schema, "additionalProperties": False}

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """``arguments`` as the values that the function takes; else ``ArgumentsError``."""
        try:
            bound = self._adapter.validate_python(dict(arguments))
        except ValidationError as error:
            raise ArgumentsError(self._explain(error), faults=_faults(error)) from error
        return {name: getattr(bound, name) for name in self._names}

    def _explain(self, error: ValidationError) -> str:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [self._line(detail["type"], detail["loc"], detail["msg"]) for detail in details]
        if len(lines) > SHOWN_ERRORS:
            lines = [*lines[:SHOWN_ERRORS], f"and {len(lines) - SHOWN_ERRORS} more"]
        return "the arguments do not fit:\n" + "\n".join(f"- {line}" for line in lines)

    def _line(self, kind: str, location: tuple[int | str, ...], message: str) -> str:
        place = ".".join(str(part) for part in location)[:100]
        if kind == "missing":
            return f"{place}: required"
        if kind == "unexpected_keyword_argument":
            known = ", ".join(self._names) or "no arguments"
            return f"{place}: unknown; this tool takes {known}"
        return f"{place}: {message[:300]}"


def _faults(error: ValidationError) -> dict[str, list[str]]:
    faults: dict[str, list[str]] = {}
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        inside = ".".join(str(part) for part in detail["loc"][1:])[:100]
        said = f"{inside}: {detail['msg']}" if inside else detail["msg"]
        faults.setdefault(str(detail["loc"][0]), []).append(said[:300])
    return faults


def _fields(function: Callable[..., object]) -> list[tuple[str, Any, Field[Any]]]:
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise TypeError(f"The tool {function.__qualname__} takes no context.")
    del parameters[0]
    for parameter in parameters:
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            raise TypeError(f"The tool {function.__qualname__} takes *{parameter.name}.")
        if parameter.name not in hints:
            raise TypeError(
                f"The argument {parameter.name} of the tool {function.__qualname__} has no type."
            )
    return [(item.name, hints[item.name], field(default=_default(item))) for item in parameters]


def _default(parameter: inspect.Parameter) -> Any:
    return MISSING if parameter.default is parameter.empty else parameter.default


def _plain(
    node: Mapping[str, Any], known: Mapping[str, Any], seen: tuple[str, ...]
) -> dict[str, Any]:
    """``node`` without titles, with references replaced by what they point to."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name in seen:
            raise TypeError(f"The type {name} contains itself: no provider takes such a schema.")
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        return _plain({**known[name], **siblings}, known, (*seen, name))
    plain: dict[str, Any] = {}
    for key, value in node.items():
        match key:
            case "title" | "$defs":
                continue
            case "properties":
                plain[key] = {name: _plain(item, known, seen) for name, item in value.items()}
            case "anyOf" | "oneOf" | "allOf" | "prefixItems":
                plain[key] = [_plain(item, known, seen) for item in value]
            case "items" | "additionalProperties" if isinstance(value, dict):
                plain[key] = _plain(value, known, seen)
            case _:
                plain[key] = value
    return _without_null(plain)


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """An optional argument is one that may be left out; ``null`` still passes validation."""
    branches = [branch for branch in node.get("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) != 1 or node.get("default", MISSING) is not None:
        return node
    rest = {key: value for key, value in node.items() if key not in {"anyOf", "default"}}
    return {**branches[0], **rest}
