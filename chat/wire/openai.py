"""A run as OpenAI clients' shapes show it: a stream of chunks, or one ``chat.completion``.

Owns the completion formats. In the stream, text and thinking are unnamed chunks and everything
else is a named event, so that a front end that follows SSE's rules and reads only unnamed events
sees a plain completion. Texts of successive messages are joined by a blank line. Bodies are made
from the fold of the same events.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from chat.events import (
    Done,
    ErrorOccurred,
    LoggedEvent,
    RunStarted,
    Snapshot,
    TextDelta,
    ThinkingDelta,
)
from chat.loop.folding import Folded
from chat.types import StopReason, Usage
from chat.wire.sse import frame, named, one_line

DONE = b"[DONE]"

#: What a client reads as "cut off" rather than as "finished".
_LENGTH: frozenset[StopReason] = frozenset({"max_iterations", "budget", "deadline"})


class CompletionStream:
    """Encodes one run from its first event; keeps what chunks must agree on."""

    def __init__(self, *, run_id: UUID, created: datetime, model: str = "") -> None:
        self._fields = _head(run_id, created, model) | {"object": "chat.completion.chunk"}
        self._head = b""
        self._begun = False
        self._text = _Joined()
        self._thinking = _Joined()

    def encode(self, batch: Iterable[LoggedEvent]) -> bytes:
        return b"".join(part for logged in batch for part in self._frames(logged))

    def _frames(self, logged: LoggedEvent) -> Iterable[bytes]:
        match logged.event:
            case TextDelta(message_id=message_id, text=text):
                yield self._delta(logged, {"content": self._text.next(message_id, text)})
            case ThinkingDelta(message_id=message_id, text=text):
                joined = self._thinking.next(message_id, text)
                yield self._delta(logged, {"reasoning_content": joined})
            case RunStarted(model=model):
                self._fields["model"] = model
                self._head = b""
                self._text.interrupt()
                self._thinking.interrupt()
                yield named(logged)
            case Snapshot(state=state):
                yield named(logged)
                yield from self._caught_up(logged, state["messages"])
            case ErrorOccurred() as error:
                yield named(logged)
                yield frame(one_line({"error": _error(error)}), event_id=logged.id)
            case Done(reason=reason):
                if reason != "error":
                    yield self._delta(logged, {}, finish_reason(reason))
                yield named(logged)
                yield frame(DONE, event_id=logged.id)
            case _:
                yield named(logged)

    def _caught_up(self, logged: LoggedEvent, messages: list[dict[str, Any]]) -> Iterable[bytes]:
        """What a snapshot holds beyond the chunks that were sent."""
        if thinking := self._thinking.rest(messages, "thinking"):
            yield self._delta(logged, {"reasoning_content": thinking})
        if text := self._text.rest(messages, "text"):
            yield self._delta(logged, {"content": text})

    def _delta(
        self, logged: LoggedEvent, delta: dict[str, str], finish: str | None = None
    ) -> bytes:
        if not self._begun:
            self._begun = True
            delta = {"role": "assistant", "content": ""} | delta
        if not self._head:  # the same for thousands of chunks: encoded once
            self._head = one_line(self._fields).removesuffix(b"}")
        choice = one_line({"index": 0, "delta": delta, "finish_reason": finish})
        return frame(b'%b,"choices":[%b]}' % (self._head, choice), event_id=logged.id)


class _Joined:
    """Pieces of successive messages, a blank line between two messages."""

    def __init__(self) -> None:
        self._message_id: UUID | None = None
        self._length = 0
        self._taken_back = False

    def next(self, message_id: UUID, text: str) -> str:
        joint = "\n\n" if self._length and message_id != self._message_id else ""
        self._message_id = message_id
        self._length += len(joint + text)
        return joint + text

    def interrupt(self) -> None:
        """The message is written anew: what came of it so far cannot be taken back."""
        self._message_id = None
        self._taken_back = self._length > 0

    def rest(self, messages: list[dict[str, Any]], key: str) -> str:
        """What the messages say beyond what was sent; all of the last one where that is unclear."""
        written = [message for message in messages if message[key]]
        if not written:
            return ""
        self._message_id = UUID(written[-1]["id"])
        whole = "\n\n".join(message[key] for message in written)
        rest = "\n\n" + str(written[-1][key]) if self._taken_back else whole[self._length :]
        self._length += len(rest)
        return rest


def completion_body(
    folded: Folded, *, run_id: UUID, conversation_id: UUID, created: datetime
) -> dict[str, Any]:
    """A run that ended without an error as one ``chat.completion``, with a few keys of ours."""
    texts = [message.text for message in folded.messages if message.text]
    thoughts = [message.thinking for message in folded.messages if message.thinking]
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(texts)}
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thoughts)
    reason = folded.stop_reason or "error"
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(reason)}
    return _head(run_id, created, folded.model) | {
        "object": "chat.completion",
        "choices": [choice | {"logprobs": None}],
        "usage": None if folded.usage is None else _usage(folded.usage),
        "run_id": str(run_id),
        "conversation_id": str(conversation_id),
        "message_id": str(folded.messages[-1].id) if folded.messages else None,
        "stop_reason": reason,
        "tool_calls": [
            {
                "id": call.id,
                "name": call.name,
                "arguments": call.arguments,
                "status": call.status,
                "content": call.result,
                "is_error": call.is_error,
            }
            for answer in folded.messages
            for call in answer.calls
        ],
        "notices": [{"code": notice.code, "text": notice.text} for notice in folded.notices],
    }


def finish_reason(reason: StopReason) -> str:
    return "length" if reason in _LENGTH else "stop"


def _head(run_id: UUID, created: datetime, model: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{run_id.hex}",
        "object": "",
        "created": int(created.timestamp()),
        "model": model,
    }


def _error(error: ErrorOccurred) -> dict[str, Any]:
    kind = "invalid_request_error" if error.code == "model_unknown" else "server_error"
    return {"message": error.message, "type": kind, "param": None, "code": error.code}


def _usage(usage: Usage) -> dict[str, Any]:
    prompt = usage.fresh_input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }
