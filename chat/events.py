"""Level 0: the numbered facts about a run, one frozen class per event.

Owns names and data of events and their JSON form (``to_data``, ``from_data``). How they are
stored belongs to ``runs/event_log``, how a client reads them to ``wire``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias
from uuid import UUID

import msgspec

from chat.types import CallStatus, Completion, FinishReason, StopReason, ToolCall, Touched, Usage

CostIs = Literal["exact", "at_least", "unknown"]


class RunStarted(msgspec.Struct, frozen=True, kw_only=True):
    """An executor begins, or begins again. ``message_id`` is the user's message it answers.

    ``interrupted``: the attempt before was broken off, and its unfinished message is written anew.
    """

    name: ClassVar[str] = "run_started"
    run_id: UUID
    conversation_id: UUID
    message_id: UUID
    model: str
    provider: str
    interrupted: bool = False


class TextDelta(msgspec.Struct, frozen=True, kw_only=True):
    name: ClassVar[str] = "text_delta"
    message_id: UUID
    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, kw_only=True):
    name: ClassVar[str] = "thinking_delta"
    message_id: UUID
    text: str


class MessageCompleted(msgspec.Struct, frozen=True, kw_only=True):
    """The model's message is whole.

    ``completion``, ``calls`` (with ids minted) and ``iteration`` are for the executor that writes
    the row; they are no part of the data that is stored and sent.
    """

    name: ClassVar[str] = "message_completed"
    message_id: UUID
    finish_reason: FinishReason
    completion: Completion | None = None
    calls: tuple[ToolCall, ...] = ()
    iteration: int = 0


class CallShown(msgspec.Struct, frozen=True, kw_only=True):
    """One call as clients see it. ``arguments``: "{}" where empty, else the model's raw text."""

    id: str
    name: str
    arguments: str


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """The message just completed asks for calls. Its data is a JSON array."""

    name: ClassVar[str] = "tool_use"
    calls: tuple[CallShown, ...]


class ApprovalRequired(msgspec.Struct, frozen=True, kw_only=True):
    """A person decides before a call runs. ``name`` in its data is the tool's name.

    ``arguments`` is the object that runs, ``preview`` what it would do (text, diff or None),
    ``because`` why it is asked for, ``scopes`` how far a yes may reach. A second one for the same
    call takes the place of the first: what the call would change is another by now.
    """

    name: ClassVar[str] = "approval_required"
    approval_id: UUID
    tool_call_id: str
    tool: str
    arguments: dict[str, Any]
    preview: dict[str, Any]
    effect: str
    because: str
    scopes: tuple[str, ...]
    expires_at: datetime


class ApprovalResolved(msgspec.Struct, frozen=True, kw_only=True):
    """A decision; ``arguments`` where the person changed them, ``by`` where it was a person."""

    name: ClassVar[str] = "approval_resolved"
    approval_id: UUID
    tool_call_id: str
    decision: Literal["approved", "denied", "expired"]
    arguments: dict[str, Any] | None = None
    reason: str = ""
    by: str = ""


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True):
    name: ClassVar[str] = "tool_started"
    tool_call_id: str


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one call. ``name`` in its data is the tool's name."""

    name: ClassVar[str] = "tool_result"
    tool_call_id: str
    tool: str
    content: str
    is_error: bool
    status: CallStatus
    duration_ms: int
    summary: str = ""
    touched: tuple[Touched, ...] = ()
    from_outside: bool = False


class UsageReported(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one model call; ``cost`` is decimal text in US dollars, or None."""

    name: ClassVar[str] = "usage"
    message_id: UUID
    usage: Usage
    cost: str | None = None
    cost_is: CostIs = "unknown"


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A repair, a retry, a limit: something that the person should know of."""

    name: ClassVar[str] = "notice"
    code: str
    text: str


class ErrorOccurred(msgspec.Struct, frozen=True, kw_only=True):
    """Comes before ``done`` with reason ``error``. ``status`` is the upstream's."""

    name: ClassVar[str] = "error"
    code: str
    message: str
    provider: str | None = None
    status: int | None = None
    retryable: bool = False


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The run's state so far, for a resume point that no longer exists. Never stored."""

    name: ClassVar[str] = "snapshot"
    state: dict[str, Any]
    covers: str


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Always last. ``message_id`` is the run's last assistant message, None where there is none."""

    name: ClassVar[str] = "done"
    reason: StopReason
    run_id: UUID
    message_id: UUID | None = None
    usage: Usage | None = None
    cost: str | None = None
    cost_is: CostIs = "unknown"


Event: TypeAlias = (
    RunStarted
    | TextDelta
    | ThinkingDelta
    | MessageCompleted
    | ToolUse
    | ApprovalRequired
    | ApprovalResolved
    | ToolStarted
    | ToolResult
    | UsageReported
    | Notice
    | ErrorOccurred
    | Snapshot
    | Done
)

EVENTS: dict[str, type[Event]] = {
    kind.name: kind
    for kind in (
        RunStarted,
        TextDelta,
        ThinkingDelta,
        MessageCompleted,
        ToolUse,
        ApprovalRequired,
        ApprovalResolved,
        ToolStarted,
        ToolResult,
        UsageReported,
        Notice,
        ErrorOccurred,
        Snapshot,
        Done,
    )
}


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event with its place in its run's log.

    ``id`` is what a listener of the run resumes from, ``full_id`` one of the conversation.
    """

    run_id: UUID
    attempt: int
    seq: int
    event: Event

    @property
    def id(self) -> str:
        return f"{self.attempt}-{self.seq}"

    @property
    def full_id(self) -> str:
        return f"{self.run_id}.{self.id}"


def to_data(event: Event) -> Any:
    """The event's data as JSON values; UUIDs become text. Stored and sent as it is."""
    match event:
        case MessageCompleted():
            return {
                "message_id": str(event.message_id),
                "finish_reason": event.finish_reason,
            }
        case ToolUse():
            return [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in event.calls
            ]
        case ToolResult() | ApprovalRequired():
            data: dict[str, Any] = msgspec.to_builtins(event)
            data["name"] = data.pop("tool")
            return data
        case UsageReported() | Done():
            data = msgspec.to_builtins(event)
            usage = data.pop("usage") or {}
            estimated = usage.pop("estimated", False)
            if usage:
                data |= {"usage": usage, "usage_is": "estimated" if estimated else "reported"}
            else:
                data |= {"usage": None, "usage_is": None}
            return data
        case _:
            return msgspec.to_builtins(event)


def from_data(name: str, data: Any) -> Event:
    """The inverse of ``to_data``, but for what only the executor needs."""
    match name:
        case "tool_use":
            shown = tuple(
                CallShown(
                    id=call["id"],
                    name=call["function"]["name"],
                    arguments=call["function"]["arguments"],
                )
                for call in data
            )
            return ToolUse(calls=shown)
        case "tool_result" | "approval_required":
            rest = dict(data)
            return msgspec.convert(rest | {"tool": rest.pop("name")}, EVENTS[name])
        case "usage" | "done":
            rest = dict(data)
            estimated = rest.pop("usage_is", None) == "estimated"
            if rest.get("usage") is not None:
                rest["usage"] = rest["usage"] | {"estimated": estimated}
            return msgspec.convert(rest, EVENTS[name])
        case _:
            return msgspec.convert(data, EVENTS[name])
