"""Doubles that ship with the product: a provider that plays a script. Never imported by it.

A script is one entry per model call. ``says`` and ``calls`` make the usual ones; an entry is any
sequence of reads, where a read is one delta or a tuple of them, an ``asyncio.Event`` to wait for,
or an exception to raise. Nothing sleeps: tests set events and wait for states.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import TypeAlias

from chat.types import (
    Completion,
    Delta,
    Fault,
    FinishReason,
    ModelRequest,
    RequestedCall,
    TextDelta,
    ThinkingDelta,
    Usage,
)

Read: TypeAlias = Delta | tuple[Delta, ...] | asyncio.Event | Exception
Call: TypeAlias = RequestedCall | tuple[str, str | Mapping[str, object]]


class ScriptedProvider:
    """Plays one entry per call and records what it was asked; the last entry is repeated.

    ``open`` is how many streams are open; ``opened`` is set while one is, ``closed`` once the
    last open one was closed.
    """

    def __init__(self, *script: Sequence[Read], name: str = "scripted") -> None:
        self.name = name
        self.requests: list[ModelRequest] = []
        self.open = 0
        self.opened = asyncio.Event()
        self.closed = asyncio.Event()
        self._script = script

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Delta, ...], None]:
        entry = self._script[min(len(self.requests), len(self._script) - 1)]
        self.requests.append(request)
        self.open += 1
        self.closed.clear()
        self.opened.set()
        try:
            for read in entry:
                match read:
                    case asyncio.Event():
                        await read.wait()
                    case Exception():
                        raise read
                    case tuple():
                        yield read
                    case _:
                        yield (read,)
        finally:
            self.open -= 1
            if not self.open:
                self.opened.clear()
                self.closed.set()


def says(
    text: str,
    *,
    thinking: str = "",
    finish_reason: FinishReason = "end_turn",
    usage: Usage | None = None,
    pieces: int = 2,
) -> list[Read]:
    """A model call that answers with ``text`` in ``pieces`` reads."""
    return _entry(text, thinking, (), finish_reason, usage, pieces)


def calls(
    *requested: Call,
    text: str = "",
    finish_reason: FinishReason = "tool_use",
    usage: Usage | None = None,
) -> list[Read]:
    """A model call that asks for tool calls, each a name with its arguments."""
    made = tuple(_requested(index, call) for index, call in enumerate(requested))
    return _entry(text, "", made, finish_reason, usage, 1)


def fails(message: str = "overloaded", *, text: str = "", status: int | None = None) -> list[Read]:
    """A model call that breaks off after ``text``."""
    fault = Fault("server_error", message, status=status)
    completion = Completion(text=text, finish_reason="error", fault=fault)
    return [*([TextDelta(text)] if text else []), completion]


def _requested(index: int, call: Call) -> RequestedCall:
    if isinstance(call, RequestedCall):
        return call
    name, arguments = call
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return RequestedCall(None, name, arguments)


def _entry(
    text: str,
    thinking: str,
    requested: tuple[RequestedCall, ...],
    finish_reason: FinishReason,
    usage: Usage | None,
    pieces: int,
) -> list[Read]:
    completion = Completion(
        text=text, thinking=thinking, calls=requested, usage=usage, finish_reason=finish_reason
    )
    thoughts = [ThinkingDelta(piece) for piece in _cut(thinking, pieces)]
    words = [TextDelta(piece) for piece in _cut(text, pieces)]
    return [*thoughts, *words, completion]


def _cut(text: str, pieces: int) -> Iterable[str]:
    length = max(1, -(-len(text) // max(1, pieces)))
    return (text[start : start + length] for start in range(0, len(text), length))
