"""Fold a run's events back into what they say: text, thinking, calls, usage, stop reason.

The fold of a run's whole log equals its rows. Owns that reading of the events; a listener whose
resume point is gone is sent ``Folded.state()`` as a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

import msgspec

from chat.events import (
    ApprovalRequired,
    ApprovalResolved,
    Done,
    ErrorOccurred,
    Event,
    MessageCompleted,
    Notice,
    RunStarted,
    Snapshot,
    TextDelta,
    ThinkingDelta,
    ToolResult,
    ToolStarted,
    ToolUse,
    UsageReported,
    to_data,
)
from chat.types import CallStatus, FinishReason, StopReason, Touched, Usage


class FoldedApproval(msgspec.Struct, kw_only=True):
    """``decision`` is empty while it is awaited; ``edited`` is what ran in ``arguments``' place."""

    id: UUID
    arguments: dict[str, Any]
    preview: dict[str, Any]
    effect: str
    because: str
    scopes: tuple[str, ...]
    expires_at: datetime
    decision: str = ""
    edited: dict[str, Any] | None = None
    reason: str = ""
    by: str = ""


class FoldedCall(msgspec.Struct, kw_only=True):
    id: str
    name: str
    arguments: str
    status: CallStatus = "pending"
    result: str = ""
    is_error: bool = False
    duration_ms: int = 0
    summary: str = ""
    touched: tuple[Touched, ...] = ()
    approval: FoldedApproval | None = None


class FoldedMessage(msgspec.Struct, kw_only=True):
    """``finish_reason`` is None while the message is being written."""

    id: UUID
    text: str = ""
    thinking: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    calls: list[FoldedCall] = msgspec.field(default_factory=list)


class Folded(msgspec.Struct, kw_only=True):
    """A run as its events tell it so far; ``stop_reason`` is None while it goes on."""

    run_id: UUID | None = None
    conversation_id: UUID | None = None
    model: str = ""
    provider: str = ""
    messages: list[FoldedMessage] = msgspec.field(default_factory=list)
    notices: list[Notice] = msgspec.field(default_factory=list)
    error: ErrorOccurred | None = None
    stop_reason: StopReason | None = None

    @property
    def usage(self) -> Usage | None:
        known = [message.usage for message in self.messages if message.usage]
        return sum(known[1:], known[0]) if known else None

    @property
    def is_awaiting(self) -> bool:
        """Whether a person has to decide before anything goes on."""
        calls = (call for message in self.messages[-1:] for call in message.calls)
        return any(call.approval and not call.approval.decision for call in calls)

    def state(self) -> dict[str, Any]:
        """JSON values for a ``snapshot``; the messages' texts are all so far."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        data["notices"] = [to_data(notice) for notice in self.notices]
        data["error"] = None if self.error is None else to_data(self.error)
        return data

    def apply(self, event: Event) -> None:
        """Take one event in; events come in their order."""
        match event:
            case RunStarted():
                self._start(event)
            case TextDelta(message_id=message_id, text=text):
                self._message(message_id).text += text
            case ThinkingDelta(message_id=message_id, text=text):
                self._message(message_id).thinking += text
            case MessageCompleted(message_id=message_id, finish_reason=finish_reason):
                self._message(message_id).finish_reason = finish_reason
            case UsageReported(message_id=message_id, usage=usage):
                self._message(message_id).usage = usage
            case ToolUse() | ToolStarted() | ToolResult():
                self._apply_to_calls(event)
            case ApprovalRequired() | ApprovalResolved():
                self._apply_to_approvals(event)
            case _:
                self._apply_to_run(event)

    def _start(self, event: RunStarted) -> None:
        """A new attempt writes the unfinished message anew, under the same id."""
        self.run_id = event.run_id
        self.conversation_id = event.conversation_id
        self.model = event.model
        self.provider = event.provider
        for message in self.messages:
            if message.finish_reason is None:
                message.text = message.thinking = ""

    def _message(self, message_id: UUID) -> FoldedMessage:
        for message in reversed(self.messages):
            if message.id == message_id:
                return message
        self.messages.append(FoldedMessage(id=message_id))
        return self.messages[-1]

    def _apply_to_calls(self, event: ToolUse | ToolStarted | ToolResult) -> None:
        match event:
            case ToolUse(calls=shown):
                self.messages[-1].calls = [
                    FoldedCall(id=call.id, name=call.name, arguments=call.arguments)
                    for call in shown
                ]
            case ToolStarted(tool_call_id=call_id):
                self._call(call_id).status = "running"
            case ToolResult(tool_call_id=call_id):
                call = self._call(call_id)
                call.status = event.status
                call.result = event.content
                call.is_error = event.is_error
                call.duration_ms = event.duration_ms
                call.summary = event.summary
                call.touched = event.touched
            case _:
                assert_never(event)

    def _apply_to_approvals(self, event: ApprovalRequired | ApprovalResolved) -> None:
        call = self._call(event.tool_call_id)
        match event:
            case ApprovalRequired():
                call.status = "awaiting_approval"
                call.approval = FoldedApproval(
                    id=event.approval_id,
                    arguments=event.arguments,
                    preview=event.preview,
                    effect=event.effect,
                    because=event.because,
                    scopes=event.scopes,
                    expires_at=event.expires_at,
                )
            case ApprovalResolved():
                call.status = "pending"
                if call.approval is not None:
                    call.approval.decision = event.decision
                    call.approval.edited = event.arguments
                    call.approval.reason = event.reason
                    call.approval.by = event.by
            case _:
                assert_never(event)

    def _call(self, call_id: str) -> FoldedCall:
        calls = (call for message in reversed(self.messages) for call in message.calls)
        return next(call for call in calls if call.id == call_id)

    def _apply_to_run(self, event: Notice | ErrorOccurred | Snapshot | Done) -> None:
        match event:
            case Notice():
                self.notices.append(event)
            case ErrorOccurred():
                self.error = event
            case Done(reason=reason):
                self.stop_reason = reason
            case Snapshot(state=state):
                self._replace(msgspec.convert(state, Folded))
            case _:
                assert_never(event)

    def _replace(self, other: Folded) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(other, name))


def fold(events: Iterable[Event]) -> Folded:
    folded = Folded()
    for event in events:
        folded.apply(event)
    return folded
