"""The loop with a person in it: it pauses, goes on from their word, and says what became of it."""

from dataclasses import replace
from typing import Any

import pytest

from chat import events
from chat.loop.run_loop import LoopEnded, LoopPaused
from chat.testing import ScriptedProvider, calls, says
from chat.types import (
    AssistantMessage,
    CallApproved,
    CallDenied,
    CallOutcome,
    PendingCall,
    Progress,
    ToolCall,
    UserMessage,
)
from tests.chat.loop.test_run_loop import Tools, loop, names, of

SEND = ToolCall("call_1", "send", '{"to": "ada"}')
LOOK = ToolCall("call_2", "look", "{}")


class Gate:
    """Asks about ``send``; what was approved holds, unless it is told otherwise."""

    def __init__(self, found: Any = "holds") -> None:
        self.found = found
        self.checked: list[ToolCall] = []

    def asks(self, call: ToolCall) -> bool:
        return call.name == "send"

    async def recheck(self, call: ToolCall):
        self.checked.append(call)
        return self.found


def going_on(*pending: PendingCall) -> Progress:
    asked = AssistantMessage("", calls=tuple(each.call for each in pending))
    return Progress((UserMessage("send it"), asked), iterations=1, pending=pending)


async def drain(*args, **options) -> tuple[list[Any], Any]:
    batches = [batch async for batch in loop(*args, **options)]
    *told, last = [item for batch in batches for item in batch]
    return told, last


async def test_loop_pauses_instead_of_running_what_is_asked_about():
    tools = Tools()
    provider = ScriptedProvider(calls(("look", {}), ("send", {}), ("look", {}), ("send", {})))
    told, last = await drain(provider, tools, gate=Gate())
    assert [call.name for call in tools.ran] == ["look"]
    assert isinstance(last, LoopPaused)
    assert [call.name for call in last.calls] == ["send", "send"]
    assert names(told)[-2:] == ["tool_started", "tool_result"]


async def test_loop_runs_exactly_what_was_approved():
    tools, gate = Tools(), Gate()
    progress = going_on(PendingCall(SEND, decision=CallApproved('{"to":"bob"}', edited=True)))
    told, last = await drain(ScriptedProvider(says("Sent.")), tools, progress, gate=gate)
    assert [call.arguments for call in gate.checked] == ['{"to":"bob"}']
    assert [call.arguments for call in tools.ran] == ['{"to":"bob"}']
    [result] = of(told, events.ToolResult)
    assert '{"to":"bob"}' in result.content
    assert result.content.endswith("made")
    assert isinstance(last, LoopEnded)


async def test_loop_asks_again_before_anything_starts_where_the_word_is_stale():
    tools = Tools()
    progress = going_on(PendingCall(SEND, decision=CallApproved("{}")), PendingCall(LOOK))
    told, last = await drain(ScriptedProvider(), tools, progress, gate=Gate("stale"))
    assert (told, last) == ([], LoopPaused((SEND,)))
    assert tools.ran == []


async def test_loop_takes_an_outcome_of_the_check_for_the_result():
    tools = Tools()
    gone = CallOutcome("there is nobody", status="error", is_error=True)
    progress = going_on(PendingCall(SEND, decision=CallApproved("{}")))
    told, _ = await drain(ScriptedProvider(says("Well.")), tools, progress, gate=Gate(gone))
    assert names(told)[0] == "tool_result"
    assert of(told, events.ToolResult)[0].content == "there is nobody"
    assert tools.ran == []


@pytest.mark.parametrize("go_on", [False, True])
async def test_loop_ends_with_a_denial_unless_the_person_lets_it_go_on(go_on):
    tools, provider = Tools(), ScriptedProvider(says("I see."))
    denied = PendingCall(SEND, decision=CallDenied("too early", go_on=go_on))
    told, last = await drain(provider, tools, going_on(denied, PendingCall(LOOK)), gate=Gate())
    results = of(told, events.ToolResult)
    assert [result.status for result in results] == ["denied", "done" if go_on else "skipped"]
    assert "too early" in results[0].content
    assert last.reason == ("end_turn" if go_on else "denied")
    assert len(provider.requests) == go_on


async def test_loop_skips_what_a_crash_left_behind_a_denial():
    progress = replace(going_on(PendingCall(LOOK)), denied=True)
    tools = Tools()
    told, last = await drain(ScriptedProvider(), tools, progress, gate=Gate())
    assert [result.status for result in of(told, events.ToolResult)] == ["skipped"]
    assert (last.reason, tools.ran) == ("denied", [])
