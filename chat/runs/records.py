"""What an executor writes on each boundary: messages, their calls, results, and their events.

Each function is one transaction, fenced by the executor's attempt: where a later attempt owns the
run nothing is written and ``FencedOut`` is raised. The run's status is ``lifecycle``'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from chat import events
from chat.events import LoggedEvent
from chat.exceptions import FencedOut
from chat.models import (
    Conversation,
    Message,
    MessageRole,
    Run,
    RunStatus,
    ToolCall,
    ToolCallStatus,
)
from chat.runs import event_log
from chat.transcript.history import OPEN_STATUSES


@dataclass(frozen=True, slots=True)
class Record:
    """A model's message to be written: a draft (``completion`` None), or whole."""

    message_id: UUID
    parent_id: UUID
    text: str
    thinking: str
    provider: str
    model: str
    event: events.MessageCompleted | None = None
    usage: events.UsageReported | None = None


@dataclass(frozen=True, slots=True)
class Fence:
    """Whose write it is: every statement of an executor holds only while its attempt does."""

    run_id: UUID
    attempt: int
    origin: str


def draft_save(*, fence: Fence, record: Record) -> None:
    """Checkpoint partial text; a message that is whole meanwhile stays as it is."""
    with transaction.atomic():
        fenced(fence)
        message_write(fence, record, stopped=False)


def batch_record(
    *,
    fence: Fence,
    messages: Sequence[Record],
    started: Sequence[str],
    results: Sequence[events.ToolResult],
    logged: Sequence[LoggedEvent],
) -> None:
    """Commit one batch of the loop: messages, calls that start, results, and its events."""
    with transaction.atomic():
        run = fenced(fence)
        for record in messages:
            message_write(fence, record, stopped=False)
            _calls_insert(run, record)
        if started:
            ToolCall.objects.filter(
                conversation_id=run.conversation_id, call_id__in=started
            ).update(status=ToolCallStatus.RUNNING, started=Now())
        for result in results:
            result_write(run, result)
        event_log.events_store(logged=logged, origin=fence.origin)


def fenced(fence: Fence) -> Run:
    run = (
        Run.objects.select_for_update(no_key=True)
        .filter(id=fence.run_id, attempt=fence.attempt, status=RunStatus.RUNNING)
        .first()
    )
    if run is None:
        raise FencedOut
    return run


def message_write(fence: Fence, record: Record, *, stopped: bool) -> None:
    completion = record.event.completion if record.event else None
    values: dict[str, object] = {
        "content": record.text,
        "thinking": record.thinking,
        "provider": record.provider,
        "model": record.model,
        "stopped": stopped,
    }
    if record.event is not None:
        values |= {
            "finish_reason": record.event.finish_reason,
            "iteration": record.event.iteration or None,
            "provider_details": dict(completion.details) if completion else {},
        }
        if completion and completion.raw_finish_reason:
            values["extra"] = {"raw_finish_reason": completion.raw_finish_reason}
    if record.usage is not None:
        values |= _usage_columns(record.usage)
    changed = Message.objects.filter(id=record.message_id, finish_reason="").update(**values)
    if changed:
        return
    run = Run.objects.only("conversation_id").get(id=fence.run_id)
    _message, created = Message.objects.get_or_create(
        id=record.message_id,
        defaults=values
        | {
            "conversation_id": run.conversation_id,
            "parent_id": record.parent_id,
            "role": MessageRole.ASSISTANT,
            "run_id": fence.run_id,
        },
    )
    if created:
        Conversation.objects.filter(id=run.conversation_id, leaf_id=record.parent_id).update(
            leaf_id=record.message_id, updated=Now()
        )


def _usage_columns(reported: events.UsageReported) -> dict[str, object]:
    usage = reported.usage
    return {
        "fresh_input_tokens": usage.fresh_input,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "output_tokens": usage.output,
        "usage_is": "estimated" if usage.estimated else "reported",
        "cost": reported.cost,
    }


def _calls_insert(run: Run, record: Record) -> None:
    if record.event is None or not record.event.calls:
        return
    ToolCall.objects.bulk_create(
        ToolCall(
            owner_id=run.owner_id,
            conversation_id=run.conversation_id,
            message_id=record.message_id,
            position=position,
            call_id=call.id,
            name=call.name,
            arguments=call.arguments,
            provider_extra=dict(call.extra),
        )
        for position, call in enumerate(record.event.calls)
    )
    if record.event.iteration:
        Run.objects.filter(id=run.id).update(iterations=record.event.iteration)


def result_write(run: Run, result: events.ToolResult) -> None:
    ToolCall.objects.filter(
        conversation_id=run.conversation_id,
        call_id=result.tool_call_id,
        status__in=OPEN_STATUSES,
    ).update(
        status=result.status,
        result=result.content,
        is_error=result.is_error,
        from_outside=result.from_outside,
        finished=Now(),
        extra={
            "summary": result.summary,
            "duration_ms": result.duration_ms,
            "touched": [
                {"kind": item.kind, "id": item.id, "title": item.title} for item in result.touched
            ],
        },
    )
