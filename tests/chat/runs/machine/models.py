"""What models say and ask for, and tools that come to an end."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from chat.runs import executor
from chat.types import RequestedCall, TextDelta, ThinkingDelta
from tests.chat.runs.machine.play import Play, pick, pieces, which

names = ["look", "paint", "paint", "add", "add", "work", "watch", "nope", ""]
requested = st.builds(
    RequestedCall,
    id=st.sampled_from([None, "", "call_1"]),
    name=st.sampled_from(names),
    arguments=st.sampled_from(["{}", '{"value": 1}', '{"value": 2}', '{"value": 1', "null"]),
)


class Models(Play):
    @precondition(lambda self: self.streaming)
    @rule(at=which, piece=pieces, is_thought=st.booleans(), is_kept=st.booleans())
    def say(self, at: int, piece: str, is_thought: bool, is_kept: bool) -> None:
        self.patch.setattr(executor, "CHECKPOINT_SECONDS", -1.0 if is_kept else 1e9)
        delta = ThinkingDelta(piece) if is_thought else TextDelta(piece)
        self.go(pick(self.streaming, at).feed(delta))

    @precondition(lambda self: self.streaming)
    @rule(
        at=which,
        calls=st.lists(requested, min_size=1, max_size=3),
        is_cut_off=st.sampled_from([False, False, False, True]),
    )
    def call(self, at: int, calls: list[RequestedCall], is_cut_off: bool) -> None:
        attempt = pick(self.streaming, at)
        reason = "max_tokens" if is_cut_off else "tool_use"
        self.go(attempt.feed(attempt.complete(calls=tuple(calls), finish_reason=reason)))

    @precondition(lambda self: self.streaming)
    @rule(
        at=which,
        name=st.sampled_from(["paint", "add", "add", "work"]),
        values=st.lists(st.integers(0, 2), min_size=1, max_size=3),
    )
    def call_well(self, at: int, name: str, values: list[int]) -> None:
        """One tool, as often as there are values."""
        calls = [RequestedCall(None, name, json.dumps({"value": value})) for value in values]
        self.call(at, calls, False)

    @precondition(lambda self: self.streaming)
    @rule(at=which, reason=st.sampled_from(["end_turn", "end_turn", "tool_use", "max_tokens"]))
    def answer(self, at: int, reason: Any) -> None:
        attempt = pick(self.streaming, at)
        self.go(attempt.feed(attempt.complete(finish_reason=reason)))

    @precondition(lambda self: self.working)
    @rule(at=which)
    def tool_return(self, at: int) -> None:
        self.go(pick(self.working, at).tool_return())
