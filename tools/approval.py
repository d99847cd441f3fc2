"""What exactly a person approves, as digests: a call with its target's version, or a tool. Pure.

Whether anybody has to be asked is ``policy``'s; who decided what is kept by whoever asks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.definitions import Preview
from tools.registry import Tool


@dataclass(frozen=True, slots=True)
class Approved:
    """A person's yes to one call: it holds for what gives this digest, and for nothing else.

    ``shown`` is what they saw of it, and ``together`` are the calls before it that they approved in
    the same go: what ``follows`` needs to know.
    """

    digest: str
    version: str = ""
    shown: Preview | None = None
    together: tuple[str, ...] = ()


def canonical(arguments: Mapping[str, Any]) -> str:
    """One text for equal arguments, whatever the order and spacing that they came in."""
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def call_digest(*, tool: str, arguments: Mapping[str, Any], version: str) -> str:
    """Of a call as it is shown to a person; ``version`` is its target's, "" where it has none."""
    return _digest(tool, canonical(arguments), version)


def tool_digest(tool: Tool) -> str:
    """Of what a person knows of a tool when they allow it for good.

    Where it comes from, what a model is told of it, and its effect: a change asks again.
    """
    spec = tool.spec
    told = canonical({"description": spec.description, "parameters": dict(spec.parameters)})
    return _digest(tool.source, spec.name, tool.effect, told)


def follows(approved: Approved, *, tool: str, arguments: Mapping[str, Any], now: Preview) -> bool:
    """Whether a yes still holds where calls that were approved in the same go changed the target.

    Only if nobody else changed it, and if the call still takes away and adds the very lines that
    the person saw, whatever stands around them by now.
    """
    digest = call_digest(tool=tool, arguments=arguments, version=approved.version)
    if digest != approved.digest or approved.version not in now.earlier:
        return False
    shown = approved.shown
    if shown is None or shown.diff is None or now.diff is None:
        return False
    return shown.text == now.text and _changed_lines(shown.diff) == _changed_lines(now.diff)


def _changed_lines(diff: str) -> list[str]:
    return [line for line in diff.split("\n") if line.startswith(("+", "-", "\\"))]


def _digest(*parts: str) -> str:
    # As JSON, so that no part can run over into the next; "\\ud800" cannot be encoded raw.
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
