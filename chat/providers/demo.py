"""The provider that answers when nothing is configured: scripted text, real tool calls.

Owns how an answer is streamed (word by word, at a pace) and its estimated usage; what is said
belongs to ``demo_script``.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator

from chat.providers.demo_script import next_turn
from chat.types import Completion, Delta, ModelRequest, RequestedCall, TextDelta, Usage

NAME = "demo"
PACE = 0.02

#: A long answer is cut into no more pieces than this, so that none takes more than seconds.
MOST_PIECES = 150


class DemoProvider:
    """``pace`` is the pause before each word in seconds; tests give 0."""

    name = NAME

    def __init__(self, *, pace: float = PACE) -> None:
        self._pace = pace

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Delta, ...], None]:
        turn = next_turn(request)
        calls: tuple[RequestedCall, ...] = ()
        if turn.tool:
            arguments = json.dumps(turn.arguments, ensure_ascii=False, separators=(",", ":"))
            calls = (RequestedCall(id=None, name=turn.tool, arguments=arguments),)
        for piece in _pieces(turn.text):
            await asyncio.sleep(self._pace)
            yield (TextDelta(piece),)
        written = len(turn.text) + sum(len(call.arguments) for call in calls)
        completion = Completion(
            text=turn.text,
            calls=calls,
            usage=Usage(fresh_input=_tokens(request), output=written // 4 + 1, estimated=True),
            finish_reason="tool_use" if calls else "end_turn",
        )
        yield (completion,)


def _pieces(text: str) -> list[str]:
    words = re.findall(r"\S+\s*|\s+", text)
    size = -(-len(words) // MOST_PIECES) or 1
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def _tokens(request: ModelRequest) -> int:
    """A rough count, so that pages about usage have something to show."""
    texts = (getattr(m, "text", "") or getattr(m, "content", "") for m in request.messages)
    return sum(len(text) for text in texts) // 4 + 1
