"""A conversation as its page shows it: read from rows, in the form that the live stream folds to.

Owns which rows belong to which run. Everything is read within its owner's rows; a stranger's
conversation does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec
from django.db.models import Prefetch

from accounts.models import User
from chat.events import ErrorOccurred, Notice
from chat.loop.folding import Folded, FoldedApproval, FoldedCall, FoldedMessage
from chat.models import (
    Conversation,
    Message,
    MessageRole,
    Run,
    RunEvent,
    RunStatus,
    ToolCall,
    ToolCallStatus,
)
from chat.runs.approvals import approval_folded
from chat.transcript import selectors
from chat.types import StopReason, Touched
from chat.wire.shown import ShownMessage, ShownRun, UndoState, run_shown
from notes.undo import calls_standing
from web.markdown import render

_IN_EFFECT = (ToolCallStatus.DONE, ToolCallStatus.UNKNOWN)


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """What the person wrote, as plain text."""

    id: UUID
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """``active`` is the run that is going on, if any; ``awaiting``: until a person decides, not."""

    entries: list[ShownQuestion | ShownRun]
    active: UUID | None
    awaiting: bool


def transcript(*, owner: User, conversation: Conversation) -> Transcript:
    """The branch that is shown; each run stands below the message it answers."""
    messages = list(selectors.conversation_messages(owner=owner, conversation_id=conversation.id))
    runs = list(Run.objects.filter(conversation=conversation).order_by("created", "id"))
    notices = _notices(runs)
    undo = undo_states(owner=owner, messages=messages)
    answers: dict[UUID | None, list[Message]] = {}
    for message in messages:
        if message.role == MessageRole.ASSISTANT:
            answers.setdefault(message.run_id, []).append(message)
    entries: list[ShownQuestion | ShownRun] = []
    for message in messages:
        if message.role == MessageRole.USER:
            entries.append(ShownQuestion(message.id, message.content))
            entries += [
                run_from_rows(run, answers.get(run.id, ()), notices.get(run.id, ()), undo)
                for run in _shown_runs(runs, message.id, answers)
            ]
        elif message.role == MessageRole.ASSISTANT and message.run_id is None:
            entries.append(_shown(Folded(stop_reason="end_turn"), [message], None, undo))
    active = next((run.id for run in runs if run.is_active), None)
    awaiting = any(run.status == RunStatus.AWAITING_APPROVAL for run in runs)
    return Transcript(entries, active, awaiting)


def _shown_runs(
    runs: Sequence[Run], message_id: UUID, answers: Mapping[UUID | None, Sequence[Message]]
) -> list[Run]:
    """The runs that answer a message: those on the branch, and the last, which may have no text."""
    asked = [run for run in runs if run.message_id == message_id]
    return [run for run in asked if run.id in answers or run is asked[-1]]


def undo_states(*, owner: User, messages: Iterable[Message]) -> dict[str, UndoState]:
    """Of every call that may have changed something, by the model's id: whether to undo it.

    One whose outcome was not known when its answer ended may have taken effect all the same.
    """
    calls = [c for row in messages for c in row.tool_calls.all() if c.status in _IN_EFFECT]
    found = calls_standing(owner=owner, tool_call_ids=[c.id for c in calls]) if calls else {}
    return {call.call_id: found.get(call.id, "") for call in calls}


def run_messages(*, run_id: UUID) -> list[Message]:
    """What a run answered, the oldest first, with its calls."""
    calls = ToolCall.objects.select_related("approval__decided_by").order_by("position")
    rows = Message.objects.filter(run_id=run_id, role=MessageRole.ASSISTANT).order_by(
        "created", "id"
    )
    return list(rows.prefetch_related(Prefetch("tool_calls", calls)))


def run_undo_states(*, owner: User, run_id: UUID) -> dict[str, UndoState]:
    return undo_states(owner=owner, messages=run_messages(run_id=run_id))


def answer_shown(*, owner: User, run: Run, message_id: UUID) -> ShownMessage:
    """One message of a run, as it is now."""
    rows = run_messages(run_id=run.id)
    shown = run_from_rows(run, rows, (), undo_states(owner=owner, messages=rows))
    return next(message for message in shown.messages if message.id == message_id)


def run_from_rows(
    run: Run,
    messages: Sequence[Message],
    notices: Iterable[Notice],
    undo: Mapping[str, UndoState],
) -> ShownRun:
    """The same that the events of ``run`` fold to, once all of them are committed."""
    folded = Folded(
        run_id=run.id,
        conversation_id=run.conversation_id,
        model=run.model,
        provider=run.provider,
        notices=list(notices),
        error=_error(run),
        stop_reason=_stop_reason(run),
    )
    return _shown(folded, messages, run.id, undo)


def _shown(
    folded: Folded,
    messages: Sequence[Message],
    run_id: UUID | None,
    undo: Mapping[str, UndoState],
) -> ShownRun:
    folded.messages = [_message(message) for message in messages]
    html = {message.id: render(message.content) for message in messages if message.content}
    return run_shown(folded, run_id=run_id, html=html, undo=undo)


def _message(row: Message) -> FoldedMessage:
    return FoldedMessage(
        id=row.id,
        text=row.content,
        thinking=row.thinking,
        finish_reason=row.finish_reason or ("error" if row.stopped else None),  # type: ignore[arg-type]
        calls=[_call(call) for call in row.tool_calls.all()],
    )


def _call(row: ToolCall) -> FoldedCall:
    return FoldedCall(
        id=row.call_id,
        name=row.name,
        arguments=row.arguments or "{}",
        status=row.status,  # type: ignore[arg-type]
        result=row.result,
        is_error=row.is_error,
        duration_ms=row.extra.get("duration_ms", 0),
        summary=row.extra.get("summary", ""),
        touched=tuple(msgspec.convert(row.extra.get("touched", ()), list[Touched])),
        approval=_approval(row),
    )


def _approval(row: ToolCall) -> FoldedApproval | None:
    approval = getattr(row, "approval", None)
    return approval_folded(approval, row) if approval else None


def _stop_reason(run: Run) -> StopReason | None:
    if run.status != RunStatus.FINISHED:
        return None
    reason: StopReason = msgspec.convert(run.stop_reason or "end_turn", StopReason)
    return reason


def _error(run: Run) -> ErrorOccurred | None:
    if not run.error_code:
        return None
    return ErrorOccurred(
        code=run.error_code,
        message=run.error_message,
        provider=run.error_provider or None,
        status=run.error_status,
        retryable=run.error_retryable,
    )


def _notices(runs: Sequence[Run]) -> dict[UUID, list[Notice]]:
    rows = RunEvent.objects.filter(run__in=runs, kind=Notice.name).order_by("run", "attempt", "seq")
    found: dict[UUID, list[Notice]] = {}
    for row in rows:
        found.setdefault(row.run_id, []).append(msgspec.convert(row.data, Notice))
    return found
