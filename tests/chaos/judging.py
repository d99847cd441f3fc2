"""What must hold of a run that was killed again and again, beside what holds of every run."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from tests.chaos.approver import way_of

if TYPE_CHECKING:
    from chat.events import LoggedEvent
    from chat.models import Run, ToolCall
    from tests.chaos.kill_workers import Report

WORD_OF = {"deny": "denied", "deny, go on": "denied"}


def judge(report: Report, run_id: UUID, number: int) -> None:
    """Count what became of the run, and name what must not be."""
    from chat.models import Message, Run
    from chat.runs.event_log import events_after
    from tests.chat.runs.invariants import assert_sound

    run = Run.objects.select_related("owner").get(id=run_id)
    log = events_after(run_id=run_id, position=(0, 0), limit=100_000)
    report.reasons[run.stop_reason or run.status] += 1
    wrong = _notes(report, run, number)
    if not Message.objects.filter(id=run.message_id).exists():
        wrong.append("the user's message is gone")
    if run.owner.approval_mode == "careful":
        wrong += _approvals(report, run, number, log)
    try:
        assert_sound(run, log)
    except AssertionError as error:
        where = traceback.extract_tb(error.__traceback__)[-1].line
        wrong.append(f"not so: {where} {str(error)[:200]}")
    if run.stop_reason not in {"end_turn", "denied", "max_iterations"}:
        wrong.append(f"it ended as {run.stop_reason or run.status} {run.error_code}")
    report.violations += [f"{run_id} (Item{number}): {each}" for each in wrong]


def _notes(report: Report, run: Run, number: int) -> list[str]:
    """Nothing was made or written twice, and what was told as done was done."""
    from chat.models import ToolCall
    from notes.models import Note

    calls = ToolCall.objects.filter(message__run=run)
    report.unknown_calls += calls.filter(status="unknown").count()
    titles = [f"Item{number}", f"Edited{number}"]
    notes = list(Note.objects.filter(owner_id=run.owner_id, title__in=titles))
    creates = calls.filter(name="note_create")
    wrong = []
    if not creates.filter(status="done").count() <= len(notes) <= creates.count():
        wrong.append(f"{creates.count()} calls made {len(notes)} notes")
    updates = calls.filter(name="note_update")
    written = sum(note.content.count("bread") + note.content.count("butter") for note in notes)
    if not updates.filter(status="done").count() <= written <= updates.count():
        wrong.append(f"{updates.count()} calls wrote {written} times")
    return wrong


def _approvals(report: Report, run: Run, number: int, log: Sequence[LoggedEvent]) -> list[str]:
    """Nothing ran that was not approved, nothing that was denied, and an edit as it was edited."""
    from chat.models import ToolCall
    from notes.models import Note

    wrong = []
    calls = ToolCall.objects.filter(message__run=run, name__in=["note_create", "note_update"])
    for call in calls.select_related("approval"):
        way = way_of(number, call.name)
        said = call.approval.decision if hasattr(call, "approval") else "never asked"
        report.decisions[f"{way}: {said}, {call.status}"] += 1
        if said != WORD_OF.get(way, "approved"):
            wrong.append(f"{call.name}: {said} where the word was {way}")
        if _has_run(call, log) and not _was_approved(call, log):
            wrong.append(f"{call.name} ran without an approval")
        word = "Edited" if call.name == "note_create" else "butter"
        notes = Note.objects.filter(owner_id=run.owner_id, title__endswith=f"ed{number}") | (
            Note.objects.filter(owner_id=run.owner_id, title=f"Item{number}")
        )
        shown = "".join(note.title + note.content for note in notes)
        if call.status == "done" and (word in shown) != (way == "approve edited"):
            wrong.append(f"{call.name}: {way}, but what was written is {shown!r}")
    return wrong


def _has_run(call: ToolCall, log: Sequence[LoggedEvent]) -> bool:
    started = any(
        item.event.name == "tool_started" and item.event.tool_call_id == call.call_id
        for item in log
        if hasattr(item.event, "tool_call_id")
    )
    return started or call.status in {"done", "unknown"}


def _was_approved(call: ToolCall, log: Sequence[LoggedEvent]) -> bool:
    """Approved by the last word on it, and before it began."""
    from chat import events

    approved = False
    for item in log:
        event = item.event
        if isinstance(event, events.ApprovalResolved) and event.tool_call_id == call.call_id:
            approved = event.decision == "approved"
        if isinstance(event, events.ToolStarted) and event.tool_call_id == call.call_id:
            return approved
    return approved
