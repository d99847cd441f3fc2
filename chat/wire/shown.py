"""What a page shows of a run: the values of the templates that live pages and reloads share.

A run is shown from its fold, whether that was folded from events or read from rows. Owns wording
and shortening of what a tool call says about itself; what the HTML looks like is the templates'.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast
from uuid import UUID

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from chat.events import ErrorOccurred, Notice
from chat.loop.folding import Folded, FoldedCall, FoldedMessage
from chat.types import StopReason, Touched
from chat.wire.cards import ShownApproval, ShownCard, approval_shown, card_shown
from notes.undo import Standing
from tools.registry import registry

SHOWN_CHARACTERS = 16_000
SUBJECT_CHARACTERS = 60

#: Where a touched thing is found, by its kind.
PAGES = {"note": "notes:note"}

#: Of a call that changed a note: how it stands with undoing that. Others have none.
UndoState = Literal[""] | Standing
UNKNOWN: Mapping[str, UndoState] = {}

#: What stands in the place of the Undo of a call.
UNDO_WORDS: Mapping[UndoState, str] = {
    "undone": "undone",
    "changed_by_person": "No undo: you changed it since",
    "changed_by_assistant": "Changed again since: undo that first",
    "in_bin": "No undo: you deleted it since",
    "taken_from_bin": "No undo: you took it out of the bin since",
}

STATES = {
    "pending": "waiting",
    "awaiting_approval": "waiting",
    "running": "running",
    "done": "done",
}

ENDS: dict[StopReason, str] = {
    "stopped": "You stopped this answer.",
    "max_iterations": "Stopped here: this answer used all the model calls it may make.",
    "deadline": "Stopped here: this answer took longer than it may.",
    "budget": "Stopped here: the budget is used up.",
    "denied": "Stopped here: a tool call was denied.",
}


@dataclass(frozen=True, slots=True)
class Link:
    url: str
    title: str


@dataclass(frozen=True, slots=True)
class ShownCall:
    """One line of tool activity. ``id`` is made of our own ids, never of the model's."""

    id: str
    name: str
    subject: str
    state: str
    summary: str
    duration: str
    arguments: str
    result: str
    is_error: bool
    links: tuple[Link, ...]
    approval: ShownApproval | None
    undo: UndoState
    undo_url: str

    @property
    def undo_words(self) -> str:
        return UNDO_WORDS.get(self.undo, "")


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """``html`` is rendered Markdown; ``is_thinking`` while nothing but thinking has come."""

    id: UUID
    html: SafeString
    thinking: str
    is_thinking: bool
    calls: tuple[ShownCall, ...]

    @property
    def card(self) -> ShownCard | None:
        return card_shown(self.id, (call.approval for call in self.calls))


@dataclass(frozen=True, slots=True)
class ShownRun:
    """``end`` says why a run ended that did not simply finish; ``id`` is None in old imports."""

    id: UUID | None
    active: bool
    awaiting: bool
    messages: tuple[ShownMessage, ...]
    notices: tuple[Notice, ...]
    error: ErrorOccurred | None
    end: str

    @property
    def undo_all(self) -> bool:
        """Whether there is more than one change to undo, one on top of another or not."""
        states = [call.undo for message in self.messages for call in message.calls]
        below = states.count("changed_by_assistant")
        possible = states.count("possible")
        return not self.active and possible > 0 and possible + below > 1

    def html(self) -> str:
        return render_to_string("chat/run.html", {"run": self})


def run_shown(
    folded: Folded,
    *,
    run_id: UUID | None,
    html: Mapping[UUID, str],
    undo: Mapping[str, UndoState] = UNKNOWN,
) -> ShownRun:
    """``html`` holds the rendered text of each message; what is missing is still to come.

    ``undo`` is by the model's ids; a call that is not in it has just been made.
    """
    reason = folded.stop_reason
    return ShownRun(
        id=run_id,
        active=reason is None,
        awaiting=reason is None and folded.is_awaiting,
        messages=tuple(
            message_shown(message, html=html.get(message.id, ""), undo=undo)
            for message in folded.messages
        ),
        notices=tuple(folded.notices),
        error=folded.error if reason in (None, "error") else None,
        end=ENDS.get(reason, "") if reason else "",
    )


def message_shown(
    message: FoldedMessage, *, html: str, undo: Mapping[str, UndoState] = UNKNOWN
) -> ShownMessage:
    return ShownMessage(
        id=message.id,
        html=mark_safe(html),  # noqa: S308
        thinking=message.thinking,
        is_thinking=not message.text and message.finish_reason is None,
        calls=tuple(
            call_shown(call, message_id=message.id, position=position, undo=undo)
            for position, call in enumerate(message.calls)
        ),
    )


def call_shown(
    call: FoldedCall,
    *,
    message_id: UUID,
    position: int,
    undo: Mapping[str, UndoState] = UNKNOWN,
) -> ShownCall:
    arguments = _parsed(call.arguments)
    return ShownCall(
        id=f"call-{message_id}-{position}",
        name=call.name,
        subject="" if (subject := _subject(call.name, arguments)) in call.summary else subject,
        state=STATES.get(call.status, "error"),
        summary=call.summary or ("" if call.status in STATES else call.status),
        duration=_duration(call.duration_ms),
        arguments=_pretty(call.arguments, arguments),
        result=_pretty(call.result, _parsed(call.result)),
        is_error=call.is_error,
        links=tuple(link for thing in call.touched if (link := _link(thing))),
        approval=approval_shown(call.approval, tool=call.name) if call.approval else None,
        undo=undo[call.id] if call.id in undo else _undo_just_made(call),
        undo_url=reverse("chat:call-undo", args=[message_id, position]),
    )


def _undo_just_made(call: FoldedCall) -> UndoState:
    tool = registry.get(call.name)
    changed = tool is not None and tool.effect == "write" and call.status == "done"
    return "possible" if changed and any(each.kind == "note" for each in call.touched) else ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _pretty(text: str, parsed: Any) -> str:
    """JSON indented, anything else as it is, neither longer than a person reads."""
    shown = json.dumps(parsed, indent=2, ensure_ascii=False) if parsed is not None else text
    if len(shown) <= SHOWN_CHARACTERS:
        return shown
    return f"{shown[:SHOWN_CHARACTERS]}\n… {len(shown) - SHOWN_CHARACTERS} more characters"


def _subject(tool: str, arguments: Any) -> str:
    """What a call is about in a few words: its first text that is no id and no choice of a few."""
    known = registry.get(tool)
    fields = cast("dict[str, Any]", known.spec.parameters["properties"]) if known else {}
    for name, value in arguments.items() if isinstance(arguments, dict) else ():
        is_choice = "enum" in fields.get(name, {})
        if isinstance(value, str) and value.strip() and not (is_choice or _is_uuid(value)):
            text = " ".join(value[: SUBJECT_CHARACTERS * 4].split())
            cut = len(text) > SUBJECT_CHARACTERS
            return f"{text[: SUBJECT_CHARACTERS - 1]}…" if cut else text
    return ""


def _duration(milliseconds: int) -> str:
    if milliseconds <= 0:
        return ""
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _link(thing: Touched) -> Link | None:
    if thing.kind not in PAGES or not _is_uuid(thing.id):
        return None
    return Link(reverse(PAGES[thing.kind], args=[UUID(thing.id)]), thing.title or "Untitled")


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
