"""One event of each kind, and the log of a run that calls a tool."""

from datetime import UTC, datetime
from uuid import UUID

from chat.events import (
    ApprovalRequired,
    ApprovalResolved,
    CallShown,
    Done,
    ErrorOccurred,
    Event,
    LoggedEvent,
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
)
from chat.types import Touched, Usage

RUN = UUID(int=1)
CONVERSATION = UUID(int=2)
QUESTION = UUID(int=3)
FIRST = UUID(int=4)
SECOND = UUID(int=5)
USAGE = Usage(fresh_input=10, cache_read=3, cache_write=2, output=7, reasoning=4)

STARTED = RunStarted(
    run_id=RUN, conversation_id=CONVERSATION, message_id=QUESTION, model="m1", provider="p"
)
CALLED = ToolUse(calls=(CallShown(id="call_1", name="note_create", arguments='{"title": "A"}'),))
RESULT = ToolResult(
    tool_call_id="call_1",
    tool="note_create",
    content='{"id": "1"}',
    is_error=False,
    status="done",
    duration_ms=12,
    summary="Made A",
    touched=(Touched("note", "1", "A"),),
)
DONE = Done(reason="end_turn", run_id=RUN, message_id=SECOND, usage=USAGE)
FAILED = ErrorOccurred(
    code="provider_error", message="overloaded", provider="p", status=529, retryable=True
)

STORY: tuple[Event, ...] = (
    STARTED,
    ThinkingDelta(message_id=FIRST, text="A note, "),
    ThinkingDelta(message_id=FIRST, text="then."),
    TextDelta(message_id=FIRST, text="Making "),
    TextDelta(message_id=FIRST, text="it."),
    MessageCompleted(message_id=FIRST, finish_reason="tool_use"),
    UsageReported(message_id=FIRST, usage=USAGE),
    CALLED,
    ToolStarted(tool_call_id="call_1"),
    RESULT,
    TextDelta(message_id=SECOND, text="Made it."),
    MessageCompleted(message_id=SECOND, finish_reason="end_turn"),
    UsageReported(message_id=SECOND, usage=USAGE),
    Notice(code="max_tokens", text="Cut off."),
    DONE,
)

ASKED = ApprovalRequired(
    approval_id=UUID(int=6),
    tool_call_id="call_1",
    tool="note_create",
    arguments={"title": "A"},
    preview={"text": "Make the note A.", "diff": "+A"},
    effect="write",
    because="in careful mode every change is asked for",
    scopes=("once", "conversation", "always"),
    expires_at=datetime(2026, 12, 7, 8, 0, tzinfo=UTC),
)
RESOLVED = ApprovalResolved(
    approval_id=UUID(int=6),
    tool_call_id="call_1",
    decision="approved",
    arguments={"title": "B"},
    by="ada",
)

EACH: tuple[Event, ...] = (
    *STORY,
    FAILED,
    ASKED,
    RESOLVED,
    Snapshot(state={"messages": []}, covers="1-9"),
)


def logged(*events: Event, attempt: int = 1, first: int = 1) -> tuple[LoggedEvent, ...]:
    return tuple(
        LoggedEvent(RUN, attempt, seq, event) for seq, event in enumerate(events, start=first)
    )
