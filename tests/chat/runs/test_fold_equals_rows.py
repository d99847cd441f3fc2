"""Whatever happens to a run, its log says exactly what its rows say, and ends in one ``done``."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from procrastinate.job_context import AbortReason

from chat.exceptions import HandBack
from chat.loop.calls import shown
from chat.loop.folding import fold
from chat.loop.repair import repair
from chat.models import Message, Run
from chat.runs import lifecycle
from chat.testing import ScriptedProvider
from chat.transcript.history import branch_rows, history_messages
from chat.types import Completion, Fault, RequestedCall, TextDelta, ThinkingDelta, ToolCall, Usage
from tests.chat.loop.rules import assert_valid
from tests.chat.runs.conftest import Stage
from tools.threads import unit_of_work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("units")]


class Hold(asyncio.Event):
    """A place in a script where a provider is silent; ``reached`` once it is."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def wait(self):
        self.reached.set()
        return await super().wait()


requested = st.builds(
    RequestedCall,
    id=st.sampled_from([None, "", "call_1"]),
    name=st.sampled_from(["current_time", "nope", ""]),
    arguments=st.sampled_from(["{}", "", '{"a": 1}', '{"a', "null"]),
)


@st.composite
def model_calls(draw) -> list:
    """The reads of one model call, its words cut into deltas."""
    words = draw(st.lists(st.sampled_from(["milk ", "and\n\n", "eggs", "käse\u2028"]), max_size=4))
    thoughts = draw(st.lists(st.sampled_from(["hm ", "so"]), max_size=2))
    failed = draw(st.booleans()) and draw(st.booleans())
    completion = Completion(
        text="".join(words),
        thinking="".join(thoughts),
        calls=tuple(draw(st.lists(requested, max_size=2))),
        usage=draw(st.sampled_from([None, Usage(fresh_input=5, cache_read=1, output=2)])),
        finish_reason="error" if failed else draw(st.sampled_from(["end_turn", "max_tokens"])),
        fault=Fault("server_error", "overloaded") if failed else None,
    )
    return [*map(ThinkingDelta, thoughts), *map(TextDelta, words), completion]


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    script=st.lists(model_calls(), min_size=1, max_size=4),
    cut=st.none() | st.tuples(st.integers(0, 3), st.integers(0, 6)),
    abort=st.sampled_from([AbortReason.USER_REQUEST, AbortReason.SHUTDOWN]),
)
def test_fold_equals_rows_whatever_happens(user, script, cut, abort):
    run, log = asyncio.run(_carried(user, script, cut, abort))
    run.refresh_from_db()
    assert [item.event.name for item in log].count("done") == 1
    assert log[-1].event.name == "done"
    folded = fold(item.event for item in log)
    messages = Message.objects.filter(run=run).order_by("created", "id")
    told = msgspec.json.decode(msgspec.json.encode(folded.state()["messages"]))
    assert told == [_told(message) for message in messages]
    assert (run.status, run.stop_reason) == ("finished", folded.stop_reason)
    assert run.error_code == (folded.error.code if folded.error else "")
    tip = Run.objects.get(id=run.id).conversation.leaf_id
    branch = branch_rows(conversation_id=run.conversation_id, tip_id=tip)
    assert_valid(repair(history_messages(messages=branch)).messages)


async def _carried(user, script, cut, abort):
    """Start a run and carry it to its end, broken off once where ``cut`` says: call and read."""
    run = await unit_of_work(lifecycle.run_start, owner=user, content="Go.")
    hold = Hold()
    held = [list(reads) for reads in script]
    if cut is not None and cut[0] < len(held):
        held[cut[0]].insert(cut[1], hold)
    async with Stage(ScriptedProvider(*held)) as runtime:
        carrying = asyncio.create_task(runtime.carry(run, abort_reason=lambda: abort))
        reached = asyncio.create_task(hold.reached.wait())
        await asyncio.wait({carrying, reached}, return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        if carrying.done():
            await carrying
        else:
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)
            if carrying.exception() is not None:
                assert isinstance(carrying.exception(), HandBack)
                runtime.provider = ScriptedProvider(*script[cut[0] :])
                await runtime.carry(run)
        return run, await runtime.log(run)


def _told(row: Message) -> dict[str, Any]:
    usage = {
        "fresh_input": row.fresh_input_tokens,
        "cache_read": row.cache_read_tokens,
        "cache_write": row.cache_write_tokens,
        "output": row.output_tokens,
        "reasoning": None,
        "estimated": row.usage_is == "estimated",
    }
    calls = row.tool_calls.order_by("position")
    sent = shown(tuple(ToolCall(c.call_id, c.name, c.arguments) for c in calls)).calls
    return {
        "id": str(row.id),
        "text": row.content,
        "thinking": row.thinking,
        "finish_reason": row.finish_reason or None,
        "usage": usage if row.usage_is else None,
        "calls": [
            {
                "id": call.call_id,
                "name": call.name,
                "arguments": seen.arguments,
                "status": call.status,
                "result": call.result,
                "is_error": call.is_error,
                **call.extra,
            }
            for call, seen in zip(calls, sent, strict=True)
        ],
    }
