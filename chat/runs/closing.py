"""What is written when a run ends: its open message, its open calls, and what ``done`` tells.

Each function works inside the transaction of ``lifecycle.run_close``, which has locked the run and
says why it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from chat import events
from chat.events import Event
from chat.models import Conversation, Message, Run, ToolCall, ToolCallStatus
from chat.runs import approvals, event_log, records, resume
from chat.runs.records import Fence, Record
from chat.transcript.history import OPEN_STATUSES
from chat.types import StopReason, Usage

logger = logging.getLogger(__name__)


def all_closed(*, run: Run, draft: Record | None, reason: StopReason, origin: str) -> list[Event]:
    """Close what is open of a run, message first; the events that tell of it."""
    told: list[Event] = list(_text_keep(run, draft, origin))
    # Read before their approvals run out: it is told which of them waited for a person.
    calls = list(ToolCall.objects.filter(message__run_id=run.id, status__in=OPEN_STATUSES))
    told += approvals.approvals_close(run=run)
    told += _calls_close(run, calls, reason)
    _drafts_close(run)
    return told


def _text_keep(run: Run, draft: Record | None, origin: str) -> list[events.TextDelta]:
    """Write the open message as its listeners have it: all of its text, no less than was told.

    What an executor gathered is in ``draft``. Whoever closes the run of one that is gone, or that
    has not written anything yet, reads it from the log, which knows more than the last checkpoint;
    where a new attempt had let go of the text, its listeners are given it back.
    """
    fence = Fence(run.id, run.attempt, origin)
    if draft is not None and (draft.text or draft.thinking):
        records.message_write(fence, draft, stopped=True)
        return []
    if not event_log.is_writing(run_id=run.id):
        return []
    folded = resume.folded_so_far(run_id=run.id)
    # The last one: an attempt that died before its first checkpoint left another, with no row.
    told = next((m for m in reversed(folded.messages) if m.finish_reason is None), None)
    if told is not None and (told.text or told.thinking):
        before = [m.id for m in folded.messages if m.finish_reason is not None]
        record = Record(
            message_id=told.id,
            parent_id=before[-1] if before else run.base_id or run.message_id,
            text=told.text,
            thinking=told.thinking,
            provider=folded.provider,
            model=folded.model,
        )
        records.message_write(fence, record, stopped=True)
        return []
    kept = Message.objects.filter(run_id=run.id, finish_reason="", stopped=False)
    return [events.TextDelta(message_id=m.id, text=m.content) for m in kept if m.content]


def run_report(run: Run, done: events.Done) -> None:
    usage = done.usage or Usage()
    logger.info(
        "run %s ended: %s, %d ms, %d tokens in, %d out, cost %s (%s)",
        run.id,
        done.reason,
        (timezone.now() - run.created) / timedelta(milliseconds=1),
        usage.fresh_input + usage.cache_read + usage.cache_write,
        usage.output,
        done.cost,
        done.cost_is,
    )


def _calls_close(
    run: Run, calls: Sequence[ToolCall], reason: StopReason
) -> list[events.ToolResult]:
    """Every open call gets its result: the history stays valid for any provider."""
    results = []
    for call in calls:
        was_running = call.status == ToolCallStatus.RUNNING
        result = events.ToolResult(
            tool_call_id=call.call_id,
            tool=call.name,
            content=_OUTCOME_UNKNOWN if was_running else _not_run(call, reason),
            is_error=True,
            status="unknown" if was_running else "skipped",
            duration_ms=0,
        )
        records.result_write(run, result)
        results.append(result)
    return results


_OUTCOME_UNKNOWN = "Outcome unknown: the run ended while this call was running."


def _not_run(call: ToolCall, reason: StopReason) -> str:
    if reason == "stopped":
        return "Not run: the person stopped the answer."
    if call.status == ToolCallStatus.AWAITING_APPROVAL:
        return "Not run: nobody approved this call in time."
    return "Not run: the answer ended before this call."


def _drafts_close(run: Run) -> None:
    """A message that was being written is marked as cut off; one without any text is removed."""
    drafts = Message.objects.filter(run_id=run.id, finish_reason="", stopped=False)
    for draft in drafts.filter(content="", thinking=""):
        Conversation.objects.filter(leaf=draft).update(leaf=draft.parent)
        draft.delete()
    drafts.update(stopped=True)


def error_columns(error: events.ErrorOccurred | None) -> dict[str, object]:
    if error is None:
        return {}
    return {
        "error_code": error.code,
        "error_message": error.message,
        "error_provider": error.provider or "",
        "error_status": error.status,
        "error_retryable": error.retryable,
    }


def done_event(run: Run, reason: StopReason) -> events.Done:
    messages = list(run.messages.order_by("created", "id"))
    counted = [m for m in messages if m.usage_is]
    usage = sum((_usage(m) for m in counted), Usage()) if counted else None
    costs = [m.cost for m in counted if m.cost is not None]
    return events.Done(
        reason=reason,
        run_id=run.id,
        message_id=messages[-1].id if messages else None,
        usage=usage,
        cost=str(sum(costs)) if costs else None,
        cost_is="unknown" if not costs else "exact" if len(costs) == len(messages) else "at_least",
    )


def _usage(message: Message) -> Usage:
    return Usage(
        fresh_input=message.fresh_input_tokens or 0,
        cache_read=message.cache_read_tokens or 0,
        cache_write=message.cache_write_tokens or 0,
        output=message.output_tokens or 0,
        estimated=message.usage_is == "estimated",
    )
