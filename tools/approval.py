"""What exactly a person approves, as digests: a call with its target's version, or a tool. Pure.

Whether anybody has to be asked is ``policy``'s; who decided what is kept by whoever asks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.registry import Tool


@dataclass(frozen=True, slots=True)
class Approved:
    """A person's yes to one call: it holds for what gives this digest, and for nothing else."""

    digest: str
    version: str = ""


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


def _digest(*parts: str) -> str:
    # As JSON, so that no part can run over into the next; "\\ud800" cannot be encoded raw.
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
