"""Whatever happens to a run, its log says exactly what its rows say, and ends in one ``done``."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from procrastinate.job_context import AbortReason

from chat.exceptions import HandBack
from chat.runs import lifecycle
from chat.testing import ScriptedProvider
from chat.types import Completion, Fault, RequestedCall, TextDelta, ThinkingDelta, Usage
from tests.chat.runs.conftest import Stage
from tests.chat.runs.invariants import assert_sound
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
    assert_sound(run, log)


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
