"""The raw text of a call's arguments, read once and strictly.

``parse_arguments`` owns the JSON; whether the object fits a tool is ``signature``'s question.
"""

from __future__ import annotations

import json
from typing import Any

from tools.exceptions import ToolError
from tools.text import clean


def parse_arguments(text: str | None) -> dict[str, Any]:
    """The object in ``text``; nothing, blank and ``null`` mean no arguments.

    Raises ``ToolError`` with the position of the fault, also for a key that comes twice: readers
    disagree on which one counts, and what was shown to a person must be what runs.
    """
    source = clean(text or "").strip()
    if source in {"", "null"}:
        return {}
    try:
        value = json.loads(source, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ToolError(
            f"the arguments are not valid JSON: {error.msg.removesuffix(' at')} at line "
            f"{error.lineno} column {error.colno} (character {error.pos} of {len(source)})"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ToolError("the arguments nest too deeply or hold too long a number") from error
    if not isinstance(value, dict):
        raise ToolError("the arguments must be an object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        name = clean(key)
        if name in found:
            raise ToolError(f"the arguments hold the key {name[:100]!r} twice")
        found[name] = _clean_strings(value)
    return found


def _clean_strings(value: Any) -> Any:
    """Objects inside were cleaned when they were closed: what is left are strings and lists."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_strings(item) for item in value]
    return value


def _refuse_constant(name: str) -> None:
    raise ToolError(f"the arguments hold {name}, which is not JSON")
