"""From rows to messages: the branch of a conversation as a provider's history.

Owns the walk up the tree and the computation of where a run stands (``Progress``), from rows alone.
What fits into the window and what a vendor accepts is decided in ``loop``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from chat.loop.calls import is_cut_off
from chat.models import (
    Approval,
    ApprovalDecision,
    Message,
    MessageRole,
    Run,
    ToolCall,
    ToolCallStatus,
)
from chat.types import (
    AssistantMessage,
    CallApproved,
    CallDenied,
    HistoryMessage,
    PendingCall,
    Progress,
    ToolMessage,
    UserMessage,
)
from chat.types import ToolCall as Call

#: What the model is told of an answer that was cut off.
INTERRUPTED = "[This answer was interrupted here.]"

OPEN_STATUSES = (
    ToolCallStatus.PENDING,
    ToolCallStatus.AWAITING_APPROVAL,
    ToolCallStatus.RUNNING,
)


def branch_rows(*, conversation_id: UUID, tip_id: UUID | None) -> list[Message]:
    """The messages from the root to ``tip_id`` in order, each with its tool calls (2 queries)."""
    rows = {
        message.id: message
        for message in Message.objects.filter(conversation_id=conversation_id).prefetch_related(
            "tool_calls"
        )
    }
    branch: list[Message] = []
    current = rows.get(tip_id) if tip_id else None
    while current is not None:
        branch.append(current)
        current = rows.get(current.parent_id) if current.parent_id else None
    branch.reverse()
    return branch


def run_progress(*, run: Run, tip_id: UUID | None) -> Progress:
    """Where ``run`` stands: everything that is committed, and what is still open."""
    branch = branch_rows(conversation_id=run.conversation_id, tip_id=tip_id)
    own = [m for m in branch if m.run_id == run.id and m.role == MessageRole.ASSISTANT]
    draft = next((m for m in own if _is_draft(m)), None)
    whole = [m for m in branch if m is not draft]
    last = own[-1] if own and own[-1] is not draft else None
    if draft is not None:
        finished = [m for m in own if m is not draft]
        last = finished[-1] if finished else None
    open_calls = [c for c in _calls(last) if c.status in OPEN_STATUSES] if last else []
    decided = _decided(last) if last and _calls(last) else {}
    return Progress(
        history=tuple(history_messages(messages=whole)),
        iterations=sum(1 for m in own if m is not draft and not _is_last_call(m)),
        tokens=sum(map(_tokens, own)),
        pending=tuple(
            PendingCall(
                _call(c),
                was_running=c.status == ToolCallStatus.RUNNING,
                decision=_decision(c, decided.get(c.id)),
                is_cut_off=is_cut_off(_call(c), last.finish_reason if last else ""),
            )
            for c in open_calls
        ),
        open_message_id=draft.id if draft else None,
        message_id=last.id if last else None,
        last_call_done=bool(last and _is_last_call(last)),
        denied=any(
            c.status == ToolCallStatus.DENIED and c.id in decided and not decided[c.id].go_on
            for c in (_calls(last) if last else [])
        ),
    )


def _decided(message: Message) -> dict[UUID, Approval]:
    rows = Approval.objects.filter(call__message=message).exclude(decision="")
    return {row.call_id: row for row in rows}


def _decision(call: ToolCall, approval: Approval | None) -> CallApproved | CallDenied | None:
    """A person's word on a call; an approval that ran out is none."""
    match approval:
        case Approval(decision=ApprovalDecision.APPROVED, arguments=None):
            return CallApproved(call.arguments)
        case Approval(decision=ApprovalDecision.APPROVED, arguments=str(edited)):
            return CallApproved(edited, edited=True)
        case Approval(decision=ApprovalDecision.DENIED):
            return CallDenied(approval.reason, go_on=approval.go_on)
        case _:
            return None


def history_messages(*, messages: Sequence[Message]) -> Iterator[HistoryMessage]:
    """Rows as provider messages: results follow their calls, local notes are left out."""
    for message in messages:
        match message.role:
            case MessageRole.USER:
                yield UserMessage(message.content)
            case MessageRole.ASSISTANT:
                yield from _assistant(message)
            case _:
                continue


def _assistant(message: Message) -> Iterator[HistoryMessage]:
    calls = _calls(message)
    text = message.content
    if message.stopped or message.finish_reason == "error":
        text = f"{text}\n\n{INTERRUPTED}" if text else ""
    yield AssistantMessage(
        text=text,
        thinking=message.thinking,
        calls=tuple(_call(c) for c in calls),
        provider=message.provider,
        model=message.model,
        details=message.provider_details,
    )
    for call in calls:
        if call.status not in OPEN_STATUSES:
            yield ToolMessage(
                call.call_id, call.name, call.result, call.is_error, call.from_outside
            )


def _tokens(message: Message) -> int:
    buckets = (
        message.fresh_input_tokens,
        message.cache_read_tokens,
        message.cache_write_tokens,
        message.output_tokens,
    )
    return sum(bucket or 0 for bucket in buckets)


def _is_draft(message: Message) -> bool:
    return not message.finish_reason and not message.stopped


def _is_last_call(message: Message) -> bool:
    """The answer after the limit carries no iteration number: it counts as none."""
    return message.iteration is None


def _calls(message: Message) -> list[ToolCall]:
    return sorted(message.tool_calls.all(), key=lambda c: c.position)


def _call(row: ToolCall) -> Call:
    return Call(row.call_id, row.name, row.arguments, row.provider_extra)
