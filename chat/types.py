"""Level 0: the values that travel between a provider, the loop and the rows.

Owns the shapes of messages, calls, deltas and usage. No I/O, no ORM, no wire format: how a vendor
writes them belongs to ``providers``, how a client reads them to ``wire``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from uuid import UUID

from tools.definitions import ToolSpec as ToolSpec
from tools.definitions import Touched as Touched

Role = Literal["system", "user", "assistant", "tool", "note"]

#: Why one model call ended. Whether the loop goes on is decided by the calls, never by this.
FinishReason = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "pause_turn",
    "refusal",
    "context_window",
    "error",
]

#: Why a run ended.
StopReason = Literal[
    "end_turn", "max_iterations", "denied", "stopped", "error", "budget", "deadline"
]

CallStatus = Literal[
    "pending",
    "awaiting_approval",
    "running",
    "done",
    "error",
    "denied",
    "skipped",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call in four disjoint buckets; ``output`` includes ``reasoning``."""

    fresh_input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int | None = None
    estimated: bool = False

    @property
    def total(self) -> int:
        return self.fresh_input + self.cache_read + self.cache_write + self.output

    def __add__(self, other: Usage) -> Usage:
        reasoning = [n for n in (self.reasoning, other.reasoning) if n is not None]
        return Usage(
            fresh_input=self.fresh_input + other.fresh_input,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=sum(reasoning) if reasoning else None,
            estimated=self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool call as a provider sent it. ``id`` is None where the vendor gave none."""

    id: str | None
    name: str
    arguments: str
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call with an id that is unique in its conversation; ``arguments`` is raw text."""

    id: str
    name: str
    arguments: str
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong at a provider, in its words; secrets are removed before it is made."""

    type: str
    message: str | None = None
    code: str | int | None = None
    status: int | None = None
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Completion:
    """How one model call ended: always the last delta of a stream, exactly one.

    ``finish_reason`` is "error" exactly where ``fault`` is set; ``text`` then holds what came
    before. ``details`` are vendor fields to be replayed byte for byte to the same vendor.
    """

    text: str = ""
    thinking: str = ""
    refusal: str = ""
    calls: tuple[RequestedCall, ...] = ()
    usage: Usage | None = None
    finish_reason: FinishReason = "end_turn"
    raw_finish_reason: str | None = None
    fault: Fault | None = None
    details: Mapping[str, object] = field(default_factory=dict)


Delta: TypeAlias = TextDelta | ThinkingDelta | Completion


@dataclass(frozen=True, slots=True)
class SystemMessage:
    text: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    text: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """``provider`` and ``model`` say where ``details`` may be replayed."""

    text: str
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    provider: str = ""
    model: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The outcome of one call, as the model reads it."""

    call_id: str
    name: str
    content: str
    is_error: bool = False
    from_outside: bool = False


HistoryMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. ``tools`` empty means that no ``tools`` key is sent at all."""

    model: str
    messages: tuple[HistoryMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What became of one tool call. ``content`` is already capped and clean text."""

    content: str
    status: CallStatus = "done"
    is_error: bool = False
    duration_ms: int = 0
    summary: str = ""
    touched: tuple[Touched, ...] = ()
    from_outside: bool = False


@dataclass(frozen=True, slots=True)
class CallApproved:
    """A person's yes; ``arguments`` is the text that runs, ``edited`` where they changed it."""

    arguments: str
    edited: bool = False


@dataclass(frozen=True, slots=True)
class CallDenied:
    """A person's no. ``go_on``: the model is told why and may do something else."""

    reason: str = ""
    go_on: bool = False


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call of the transcript without a result. ``was_running``: its executor died in it.

    ``is_stale``: it was approved, but what it would change is another by now. ``is_cut_off``: its
    message was, so that it may lack some of its arguments.
    """

    call: ToolCall
    was_running: bool = False
    decision: CallApproved | CallDenied | None = None
    is_stale: bool = False
    is_cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands, computed from its rows: fresh, or taken on after a crash.

    ``history`` holds every message before the point to go on from; a complete assistant message
    whose calls are partly open is its last assistant message, with the results there are after it.
    ``tokens`` are what the run used so far. ``open_message_id`` is the id of an unfinished
    assistant message, to be written anew.
    ``pending`` are all calls of that last message that still need a result, in the model's order;
    ``denied`` where a person denied one of them, so that nothing after it is to be done.
    """

    history: tuple[HistoryMessage, ...]
    iterations: int = 0
    pending: tuple[PendingCall, ...] = ()
    open_message_id: UUID | None = None
    message_id: UUID | None = None
    last_call_done: bool = False
    denied: bool = False
    tokens: int = 0
