"""Whatever happens to a run, its log says exactly what its rows say, and ends in one ``done``."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from procrastinate.job_context import AbortReason

from chat.exceptions import HandBack
from chat.models import Approval
from chat.runs import lifecycle
from chat.runs.approvals import approvals_pending
from chat.runs.deciding import approval_decide
from chat.testing import ScriptedProvider
from chat.types import Completion, Fault, RequestedCall, TextDelta, ThinkingDelta, Usage
from tests.chat.runs.conftest import Stage
from tests.chat.runs.invariants import assert_sound
from tools.definitions import ToolContext
from tools.registry import registry
from tools.registry import tool as make_tool
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
    name=st.sampled_from(["current_time", "current_time", "nope", "", "asked", "asked"]),
    arguments=st.sampled_from(["{}", "", '{"a": 1}', '{"a', "null"]),
)


#: What a person may say; None stops the run.
WORDS: list[dict[str, Any] | None] = [
    {"decision": "approved"},
    {"decision": "approved"},
    {"decision": "approved", "arguments": {"a": 2}},
    {"decision": "denied", "reason": "no"},
    {"decision": "denied", "go_on": True},
    None,
]


@pytest.fixture
def asked():
    """What a tool was called with that a person is asked about."""
    seen: list[int] = []
    with registry.temporarily():

        @make_tool(effect="external")
        def asked(context: ToolContext, a: int = 0) -> str:
            """Leave the machine."""
            seen.append(a)
            return f"left {a}"

        yield seen


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


@pytest.mark.thorough
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    script=st.lists(model_calls(), min_size=1, max_size=4),
    cut=st.none() | st.tuples(st.integers(0, 3), st.integers(0, 6)),
    abort=st.sampled_from([AbortReason.USER_REQUEST, AbortReason.SHUTDOWN]),
    words=st.lists(st.sampled_from(WORDS), max_size=6),
)
def test_fold_equals_rows_whatever_happens(user, asked, script, cut, abort, words):
    asked.clear()
    run, log = asyncio.run(_carried(user, script, cut, abort, list(words)))
    approved = Approval.objects.filter(run=run, decision="approved").count()
    assert len(asked) <= approved
    assert_sound(run, log)


async def _carried(user, script, cut, abort, words):
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
        while await unit_of_work(_decided, user, run, words):
            await runtime.carry(run)
        return run, await runtime.log(run)


def _decided(user, run, words) -> bool:
    """Whether the run goes on after the next words, said of one call after another."""
    run.refresh_from_db()
    while run.status == "awaiting_approval":
        word = words.pop() if words else None
        if word is None:
            lifecycle.run_stop(owner=user, run_id=run.id)
        else:
            first = approvals_pending(owner=user, run_id=run.id)[0]
            approval_decide(owner=user, approval_id=first.id, **word)
        run.refresh_from_db()
    return bool(run.status == "queued")
