"""Fit a repaired history into a number of bytes of UTF-8.

Owns what a model is shown of a long conversation: the newest whole turns (a user message and all
until the next). Where the last turn alone is too large, it gives up in this order: the ends of its
largest results, its oldest iterations, long arguments, the ends of long texts. The system message
always stays. What is valid stays valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

import msgspec

from chat.types import (
    AssistantMessage,
    HistoryMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

#: No result, text or arguments are shortened below this many bytes.
MIN_PIECE_BYTES = 200

_Turn: TypeAlias = list[HistoryMessage]


@dataclass(frozen=True, slots=True)
class Window:
    """What fits. ``dropped_turns`` and ``shortened`` say what the model does not see."""

    messages: tuple[HistoryMessage, ...]
    dropped_turns: int = 0
    shortened: bool = False


def fit(history: Sequence[HistoryMessage], *, limit: int) -> Window:
    """The part of a valid history that fits ``limit``; never larger than what was given."""
    system = [m for m in history[:1] if isinstance(m, SystemMessage)]
    turns = _turns(history[len(system) :])
    room = limit - _total(system)
    first = max(0, len(turns) - 1)
    used = _total(turns[first]) if turns else 0
    while first and used + _total(turns[first - 1]) <= room:
        first -= 1
        used += _total(turns[first])
    kept = turns[first:]
    shortened = used > room
    if shortened:
        kept = [_fit_turn(kept[0], limit=room)]
    return Window((*system, *chain.from_iterable(kept)), first, shortened)


def shorten(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` bytes, cut on a character boundary, with a marker."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    # The marker's length depends on the number in it, which is at most that of the whole.
    room = max(0, limit - len(_marker(len(raw))))
    kept = raw[:room].decode(errors="ignore")
    marker = _marker(len(raw) - len(kept.encode()))
    return kept + marker if len(marker) <= limit else marker[:limit]


def size(message: HistoryMessage) -> int:
    """The bytes of a message that a provider is sent, its vendor details included."""
    match message:
        case SystemMessage(text=text) | UserMessage(text=text):
            return len(text.encode())
        case ToolMessage(content=content):
            return len(content.encode())
        case AssistantMessage():
            calls = sum(len(c.name.encode()) + len(c.arguments.encode()) for c in message.calls)
            extras = [message.details, *(c.extra for c in message.calls)]
            vendor = sum(len(msgspec.json.encode(extra)) for extra in extras if extra)
            return len(message.text.encode()) + calls + vendor


def _marker(count: int) -> str:
    return f"\n[truncated {count} bytes]"


def _total(messages: Sequence[HistoryMessage]) -> int:
    return sum(map(size, messages))


def _turns(messages: Sequence[HistoryMessage]) -> list[_Turn]:
    turns: list[_Turn] = []
    for message in messages:
        if isinstance(message, UserMessage) or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _fit_turn(turn: _Turn, *, limit: int) -> _Turn:
    fitted = _cap_results(turn, limit=limit)
    while _total(fitted) > limit and (shorter := _without_oldest_iteration(turn)):
        turn = shorter
        fitted = _cap_results(turn, limit=limit)
    for give_up in (_without_arguments, _cap_texts):
        if _total(fitted) > limit:
            fitted = give_up(fitted, limit=limit)
    return fitted


def _cap_results(turn: _Turn, *, limit: int) -> _Turn:
    """Cut the largest results down to one common size so that the turn fits, or comes nearest."""
    results = [size(m) for m in turn if isinstance(m, ToolMessage)]
    cap = _common_cap(results, room=limit - (_total(turn) - sum(results)))
    return [
        replace(message, content=shorten(message.content, cap))
        if isinstance(message, ToolMessage)
        else message
        for message in turn
    ]


def _cap_texts(turn: _Turn, *, limit: int) -> _Turn:
    """The same for what the person and the model wrote."""
    texts = [_text_size(message) for message in turn]
    cap = _common_cap(texts, room=limit - (_total(turn) - sum(texts)))
    return [
        replace(message, text=shorten(message.text, cap))
        if isinstance(message, UserMessage | AssistantMessage)
        else message
        for message in turn
    ]


def _common_cap(sizes: Sequence[int], *, room: int) -> int:
    """The largest cap under which ``sizes`` take at most ``room`` together, within reason."""
    for done, smallest in enumerate(sorted(sizes)):
        cap = room // (len(sizes) - done)
        if smallest > cap:
            return max(MIN_PIECE_BYTES, cap)
        room -= smallest
    return max(MIN_PIECE_BYTES, *sizes, 0)


def _without_oldest_iteration(turn: _Turn) -> _Turn:
    """The turn without its first assistant message and its results; empty where only one is left.

    The last iteration stays: a model that does not see what it just asked for asks again.
    """
    starts = [i for i, m in enumerate(turn) if isinstance(m, AssistantMessage)]
    return [] if len(starts) < 2 else turn[: starts[0]] + turn[starts[1] :]


def _without_arguments(turn: _Turn, *, limit: int) -> _Turn:
    """Long arguments, say a whole note, give way to their size; vendor details repeat them."""
    return [
        replace(message, calls=tuple(map(_without_long_arguments, message.calls)), details={})
        if isinstance(message, AssistantMessage)
        else message
        for message in turn
    ]


def _without_long_arguments(call: ToolCall) -> ToolCall:
    count = len(call.arguments.encode())
    if count <= MIN_PIECE_BYTES:
        return call
    return replace(call, arguments=f'{{"truncated_bytes": {count}}}')


def _text_size(message: HistoryMessage) -> int:
    return 0 if isinstance(message, ToolMessage) else len(message.text.encode())
