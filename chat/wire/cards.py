"""What a page shows of approvals: the values of their card. Nothing in them can pass for the page.

All calls of an answer that wait for a person are one card. Owns what makes invisible characters
visible, the lines of a diff, and the arguments of a call as fields of a form. The card is plain
text outside any Markdown; what it looks like is the template's.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, cast
from uuid import UUID

from chat.loop.folding import FoldedApproval
from tools.registry import registry

#: Blank to look at, though not by their category.
_BLANK = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
#: Controls, formats (bidirectional and zero-width ones), surrogates, private use, separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})

#: Arguments with more characters than these together are not offered to be changed on a page.
EDITED_CHARACTERS = 100_000

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
class ArgumentField:
    """One argument of a call as a person can change it: text as it is, anything else as JSON."""

    name: str
    value: str
    is_text: bool
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What the call would do with the arguments as the person changed them."""

    digest: str
    text: str
    diff: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """What a person wrote on a card that is not decided yet: ``values`` and ``errors`` by argument.

    ``errors`` of "" are about all of them; ``change`` is None where there are any, or no change.
    """

    reason: str
    values: Mapping[str, str]
    errors: Mapping[str, Sequence[str]]
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class ShownApproval:
    """``status`` is in words and empty while the decision is awaited.

    ``changed`` names the arguments that were changed; ``fields`` is empty where they are too long
    to be changed on a page. ``seal`` is of what is shown, so that a word is about just that.
    """

    id: UUID
    tool: str
    seal: str
    text: str
    diff: tuple[DiffLine, ...]
    arguments: str
    fields: tuple[ArgumentField, ...]
    errors: tuple[str, ...]
    change: Change | None
    edited: str
    changed: str
    because: str
    for_good: bool
    scopes: tuple[str, ...]
    expires: datetime
    decision: str
    status: str
    reason: str
    by: str

    @property
    def is_edited(self) -> bool:
        """Whether the person is in the middle of changing the arguments."""
        return bool(self.change or self.errors or any(field.errors for field in self.fields))


@dataclass(frozen=True, slots=True)
class ShownCard:
    """The calls of one answer that wait for a person's word, in their order."""

    message_id: UUID
    approvals: tuple[ShownApproval, ...]

    @property
    def together(self) -> bool:
        return len(self.approvals) > 1


def visible(text: str) -> str:
    """``text`` with every character that cannot be seen as its code: ⟨U+202E⟩."""
    return "".join(f"⟨U+{ord(c):04X}⟩" if _is_unseen(c) else c for c in text)


def change_shown(digest: str, preview: Mapping[str, str | None]) -> Change:
    return Change(digest, visible(preview["text"] or ""), _diff_lines(preview["diff"] or ""))


def card_shown(message_id: UUID, approvals: Iterable[ShownApproval | None]) -> ShownCard | None:
    """The card of an answer, or None where nothing of it waits."""
    waiting = tuple(each for each in approvals if each is not None and not each.decision)
    return ShownCard(message_id, waiting) if waiting else None


def seal_of(approval: FoldedApproval) -> str:
    """The same for what shows the same, whether it comes from events or from rows."""
    shown = [approval.arguments, approval.preview.get("text"), approval.preview.get("diff")]
    return sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:32]


def argument_fields(tool: str, arguments: Mapping[str, Any]) -> tuple[ArgumentField, ...]:
    """What can be changed on a page: not what holds anything that nobody could see there."""
    every = (_field(name, value) for name, value in _ordered(tool, arguments).items())
    fields = tuple(field for field in every if not any(map(_is_unseen, field.name + field.value)))
    return fields if sum(len(field.value) for field in fields) <= EDITED_CHARACTERS else ()


def _field(name: str, value: Any) -> ArgumentField:
    is_text = isinstance(value, str)
    text = value if is_text else json.dumps(value, indent=2, ensure_ascii=False)
    return ArgumentField(name, text, is_text)


def approval_shown(
    approval: FoldedApproval, *, tool: str, draft: Draft | None = None
) -> ShownApproval:
    preview = approval.preview
    fields = argument_fields(tool, approval.arguments)
    if draft is not None:
        fields = tuple(
            replace(
                field,
                value=draft.values.get(field.name, field.value),
                errors=tuple(draft.errors.get(field.name, ())),
            )
            for field in fields
        )
    return ShownApproval(
        id=approval.id,
        tool=visible(tool),
        seal=seal_of(approval),
        text=visible(str(preview.get("text", ""))),
        diff=_diff_lines(str(preview.get("diff") or "")),
        arguments=_pretty(tool, approval.arguments),
        fields=fields,
        errors=tuple(draft.errors.get("", ())) if draft else (),
        change=draft.change if draft else None,
        edited="" if approval.edited is None else _pretty(tool, approval.edited),
        changed=visible(", ".join(_changed(tool, approval.arguments, approval.edited))),
        because=visible(approval.because),
        for_good=approval.effect == "external",
        scopes=approval.scopes,
        expires=approval.expires_at,
        decision=approval.decision,
        status=STATUSES.get(approval.decision, ""),
        reason=draft.reason if draft else visible(approval.reason),
        by=visible(approval.by),
    )


def _is_unseen(character: str) -> bool:
    if character in "\n\t":
        return False
    return character in _BLANK or unicodedata.category(character) in _UNSEEN


def _diff_lines(diff: str) -> tuple[DiffLine, ...]:
    """Where the lines of a text belong that is new as a whole needs no line to say it."""
    lines = diff.split("\n") if diff else []
    return tuple(_line(line) for line in lines if not line.startswith("@@ -0,0 "))


def _line(line: str) -> DiffLine:
    return DiffLine(_KINDS.get(line[:1], "same"), visible(line))


def _changed(tool: str, before: Mapping[str, Any], after: Mapping[str, Any] | None) -> list[str]:
    if after is None:
        return []
    both = _ordered(tool, {**before, **after})
    return [name for name in both if before.get(name) != after.get(name)]


def _pretty(tool: str, arguments: Mapping[str, Any]) -> str:
    return visible(json.dumps(_ordered(tool, arguments), indent=2, ensure_ascii=False))


def _ordered(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The same order from events and from rows, which keep different ones: that of the tool."""
    known = registry.get(tool)
    properties = cast("Mapping[str, Any]", known.spec.parameters["properties"]) if known else {}
    places = {name: place for place, name in enumerate(properties)}
    names = sorted(arguments, key=lambda name: (places.get(name, len(places)), name))
    return {name: _sorted(arguments[name]) for name in names}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value
