"""The events of an OpenAI-style stream to deltas and, at the end, one ``Completion``.

Owns the accumulation rules: lenient in what every vendor sends, strict in that nothing is lost
silently. Vendor fields that must be sent back are kept in ``Completion.details`` and in a call's
``extra``. Reading the connection belongs to ``openai``, tool-call fragments to ``call_slots``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from chat.providers.call_slots import CallDelta, CallSlots
from chat.providers.faults import fault_of
from chat.providers.sse import ServerEvent
from chat.providers.usage import usage_of
from chat.providers.words import Words
from chat.types import Completion, Delta, Fault, FinishReason, TextDelta, ThinkingDelta, Usage
from tools.text import clean, clean_json

_FINISH: dict[str, FinishReason] = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "context_window",
    "content_filter": "refusal",
}

#: What the end of a message with calls is called.
_ANNOUNCED = frozenset({"tool_calls", "function_call", "tool_use"})

#: Words that vendors use for a turn that went wrong without an error object.
_BROKEN = frozenset({"error", "abort", "insufficient_system_resource"})


class _Message(msgspec.Struct):
    """A delta, or the message of a whole answer. ``Any``: vendors differ in the type."""

    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    extra_content: Any = None
    tool_calls: list[CallDelta] | None = None


class _Choice(msgspec.Struct):
    index: Any = 0
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    x_groq: Any = None
    object: Any = None
    message: Any = None


_LONGEST_REASON = 100

_decoder = msgspec.json.Decoder(_Chunk)


class Assembler:
    """One model call. ``known_tools`` tells whether a fragment of a name belongs to the one before.

    ``finished`` turns true where nothing more can come that matters, ``ended`` where the server
    said so itself.
    """

    def __init__(self, *, known_tools: frozenset[str] = frozenset()) -> None:
        self.finished = False
        self.ended = False
        self._calls = CallSlots(known_tools)
        self._text = Words()
        self._thinking = Words()
        self._refusal = Words()
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._fault: Fault | None = None
        self._reasoning_content = False
        self._reasoning_details: list[dict[str, Any]] = []
        self._extra_content: dict[str, Any] = {}

    def feed(self, events: Iterable[ServerEvent]) -> tuple[Delta, ...]:
        """What the events of one upstream read add; neighbours of a kind are one delta."""
        deltas: list[Delta] = []
        for event in events:
            if self.finished:
                break
            self._take_event(event, deltas)
        return tuple(deltas)

    def feed_body(self, body: bytes) -> tuple[Delta, ...]:
        """A whole answer in JSON, as some servers give in spite of ``"stream": true``."""
        deltas = self.feed((ServerEvent(body),))
        self.ended = True
        return deltas

    def fail(self, fault: Fault) -> None:
        """The connection broke; a turn that had already ended is none the worse for it."""
        if self._finish is None and not self.finished:
            self._fault = fault
        self.finished = True

    def complete(self) -> Completion:
        """How the call ended, given everything that was fed."""
        calls = self._calls.requested()
        text, refusal = self._text.whole(), self._refusal.whole()
        fault = self._fault or self._incomplete(empty=not (text or refusal or calls))
        return Completion(
            text=text,
            thinking=self._thinking.whole(),
            refusal=refusal,
            calls=calls,
            usage=self._usage,
            finish_reason=self._normalised(fault, calls=bool(calls), refusal=bool(refusal)),
            raw_finish_reason=self._finish,
            fault=fault,
            details=self._details(),
        )

    def _take_event(self, event: ServerEvent, deltas: list[Delta]) -> None:
        data = event.data
        if event.name and event.name not in ("message", "error"):
            return
        if not data or data.isspace():
            return
        if data.startswith(b"[DONE]"):
            self.ended = self.finished = True
            return
        try:
            chunk = _decoder.decode(data)
        except (msgspec.DecodeError, RecursionError):
            odd = _decode_oddity(data)
            if odd is None:
                if not event.cut:
                    self._break(Fault("stream_malformed"))
                return
            chunk = odd
        if chunk.error or event.name == "error" or chunk.object == "error":
            self._break(fault_of(chunk.error or _decode_loosely(data)))
        else:
            self._take_chunk(chunk, deltas)

    def _take_chunk(self, chunk: _Chunk, deltas: list[Delta]) -> None:
        usage = chunk.usage
        if not usage and isinstance(chunk.x_groq, dict):
            usage = chunk.x_groq.get("usage")
        if usage:
            self._usage = usage_of(usage) or self._usage
        for choice in chunk.choices or ():
            if choice.index not in (0, None):
                continue
            message = choice.delta or choice.message
            if message is not None:
                self._take_message(message, deltas)
            if choice.finish_reason and isinstance(choice.finish_reason, str):
                self._finish = clean(choice.finish_reason)[:_LONGEST_REASON]

    def _take_message(self, message: _Message, deltas: list[Delta]) -> None:
        if message.reasoning_content and isinstance(message.reasoning_content, str):
            self._reasoning_content = True
            self._think(message.reasoning_content, deltas)
        elif message.reasoning and isinstance(message.reasoning, str):
            self._think(message.reasoning, deltas)
        if message.content:
            self._take_content(message.content, deltas)
        if message.refusal and isinstance(message.refusal, str):
            self._refusal.add(message.refusal)
        if message.reasoning_details:
            self._keep_reasoning(message.reasoning_details)
        if isinstance(message.extra_content, dict):
            self._extra_content |= message.extra_content
        if message.tool_calls:
            self._calls.take(message.tool_calls)

    def _take_content(self, content: Any, deltas: list[Delta]) -> None:
        for block in content if isinstance(content, list) else (content,):
            if isinstance(block, str):
                self._say(block, deltas)
            elif isinstance(block, dict) and block.get("type") == "thinking":
                self._think(_block_text(block.get("thinking")), deltas)
            elif isinstance(block, dict):
                self._say(_block_text(block.get("text")), deltas)

    def _say(self, text: str, deltas: list[Delta]) -> None:
        if text := self._text.add(text):
            if deltas and isinstance(deltas[-1], TextDelta):
                text = deltas.pop().text + text
            deltas.append(TextDelta(text))

    def _think(self, text: str, deltas: list[Delta]) -> None:
        if text := self._thinking.add(text):
            if deltas and isinstance(deltas[-1], ThinkingDelta):
                text = deltas.pop().text + text
            deltas.append(ThinkingDelta(text))

    def _keep_reasoning(self, details: Any) -> None:
        """Pieces of one block are joined; https://openrouter.ai/docs asks for whole blocks back."""
        for piece in details if isinstance(details, list) else ():
            if not isinstance(piece, dict):
                continue
            last = self._reasoning_details[-1] if self._reasoning_details else None
            if last is None or _block_key(last) != _block_key(piece) or "data" in piece:
                self._reasoning_details.append(dict(piece))
                continue
            for name, value in piece.items():
                if name in ("text", "summary") and isinstance(value, str):
                    last[name] = (last.get(name) or "") + value
                elif value is not None:
                    last[name] = value

    def _details(self) -> dict[str, Any]:
        details: dict[str, Any] = {}
        if self._reasoning_content:
            details["reasoning_content"] = self._thinking.whole()
        if self._reasoning_details:
            details["reasoning_details"] = self._reasoning_details
        if self._extra_content:
            details["extra_content"] = self._extra_content
        cleaned: dict[str, Any] = clean_json(details)
        return cleaned

    def _break(self, fault: Fault) -> None:
        self._fault = fault
        self.finished = True

    def _incomplete(self, *, empty: bool) -> Fault | None:
        if self._finish in _BROKEN:
            return Fault("provider_error", code=self._finish)
        if self._finish is not None:
            return None
        if not self.ended:
            return Fault("stream_incomplete")
        return Fault("stream_empty") if empty and not self._thinking.whole() else None

    def _normalised(self, fault: Fault | None, *, calls: bool, refusal: bool) -> FinishReason:
        if fault is not None:
            return "error"
        if limited := _FINISH.get(self._finish or ""):
            return limited
        # Without any it is a call that was announced and not sent.
        if calls or (self._finish in _ANNOUNCED and not refusal):
            return "tool_use"
        return "refusal" if refusal else "end_turn"


def _block_key(piece: dict[str, Any]) -> tuple[Any, Any]:
    return piece.get("type"), piece.get("index")


def _block_text(value: Any) -> str:
    """The text of a content block: a string, or a list of text blocks."""
    if isinstance(value, str):
        return value
    blocks: Sequence[Any] = value if isinstance(value, list) else ()
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _decode_loosely(data: bytes) -> Any:
    """What Python's decoder makes of it: it takes lone surrogates, NaN and control characters."""
    try:
        return json.loads(data, strict=False)
    except (ValueError, RecursionError):
        return None


def _decode_oddity(data: bytes) -> _Chunk | None:
    """A chunk that the fast decoder refuses; None where text could be lost by skipping it."""
    value = _decode_loosely(data)
    if value is None:
        return _Chunk() if data.strip() == b"null" else None
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = {"error": value[0].get("error")}  # Gemini wraps errors in an array.
    if not isinstance(value, dict):
        return _Chunk()
    if value.get("error"):
        return _Chunk(error=value["error"])
    try:
        return msgspec.convert(value, _Chunk)
    except msgspec.ValidationError:
        return None
