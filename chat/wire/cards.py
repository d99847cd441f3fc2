"""What a page shows of an approval: the values of its card. Nothing in them can pass for the page.

Owns what makes invisible characters visible and the lines of a diff. The card is plain text outside
any Markdown; what it looks like is the template's.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from chat.loop.folding import FoldedApproval

#: Blank to look at, though not by their category.
_BLANK = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
#: Controls, formats (bidirectional and zero-width ones), surrogates, private use, separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})

_KINDS = {"+": "added", "-": "removed", "@": "place"}

STATUSES = {
    "approved": "Approved",
    "denied": "Denied",
    "expired": "No longer awaited",
}


@dataclass(frozen=True, slots=True)
class DiffLine:
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownApproval:
    """``status`` is in words and empty while the decision is awaited."""

    id: UUID
    tool: str
    text: str
    diff: tuple[DiffLine, ...]
    arguments: str
    edited: str
    because: str
    for_good: bool
    scopes: tuple[str, ...]
    expires: datetime
    decision: str
    status: str
    reason: str
    by: str


def visible(text: str) -> str:
    """``text`` with every character that cannot be seen as its code: ⟨U+202E⟩."""
    return "".join(f"⟨U+{ord(c):04X}⟩" if _is_unseen(c) else c for c in text)


def approval_shown(approval: FoldedApproval, *, tool: str) -> ShownApproval:
    preview = approval.preview
    return ShownApproval(
        id=approval.id,
        tool=visible(tool),
        text=visible(str(preview.get("text", ""))),
        diff=tuple(map(_line, str(preview.get("diff") or "").split("\n")))
        if preview.get("diff")
        else (),
        arguments=_pretty(approval.arguments),
        edited="" if approval.edited is None else _pretty(approval.edited),
        because=visible(approval.because),
        for_good=approval.effect == "external",
        scopes=approval.scopes,
        expires=approval.expires_at,
        decision=approval.decision,
        status=STATUSES.get(approval.decision, ""),
        reason=visible(approval.reason),
        by=visible(approval.by),
    )


def _is_unseen(character: str) -> bool:
    if character in "\n\t":
        return False
    return character in _BLANK or unicodedata.category(character) in _UNSEEN


def _line(line: str) -> DiffLine:
    return DiffLine(_KINDS.get(line[:1], "same"), visible(line))


def _pretty(arguments: dict[str, Any]) -> str:
    return visible(json.dumps(arguments, indent=2, ensure_ascii=False))
