"""Processes that die at a commit: just before it, or just after it, wherever there is one."""

from __future__ import annotations

import asyncio

import pytest

from chat.models import Message
from chat.runs import executor, flusher
from chat.testing import ScriptedProvider, calls, says
from chat.types import ToolMessage
from tests.chat.runs.invariants import assert_sound
from tools.definitions import ToolContext
from tools.registry import registry, tool
from tools.threads import unit_of_work

pytestmark = pytest.mark.django_db


class Died(BaseException):
    """The process is gone: nothing of it goes on."""


class Dying:
    """Stands for ``unit_of_work`` in a process that dies at its ``at``-th unit."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after = at, after
        self.count = 0

    async def __call__(self, function, /, *args, **kwargs):
        self.count += 1
        if self.count < self.at:
            return await unit_of_work(function, *args, **kwargs)
        if self.count == self.at and self.after:
            await unit_of_work(function, *args, **kwargs)
        raise Died


class Model:
    """Answers by what it is sent: calls first, and words once there are results."""

    name = "scripted"

    async def stream(self, request):
        has_results = any(isinstance(m, ToolMessage) for m in request.messages)
        entry = WORDS if has_results else CALLS
        async for deltas in ScriptedProvider(entry).stream(request):
            yield deltas


CALLS = calls(("write", {"text": "a"}), ("nope", {}), ("write", {"text": "b"}), text="Let me.")
WORDS = says("Done, and done.", thinking="hm", pieces=3)


@pytest.fixture
def written():
    made: list[str] = []
    with registry.temporarily(alone=True):

        @tool(effect="write")
        async def write(context: ToolContext, text: str) -> str:
            """Write it down."""
            made.append(text)
            return "written"

        yield made


async def die_and_carry_on(monkeypatch, stage, run, at, *, after):
    """Whether the process got as far as its ``at``-th unit of work."""
    dying = Dying(at, after=after)
    first = stage(Model())
    with monkeypatch.context() as patch:
        patch.setattr(executor, "unit_of_work", dying)
        patch.setattr(flusher, "unit_of_work", dying)
        first._flushing = asyncio.create_task(first.flusher.run())
        carrying = asyncio.create_task(first.carry(run))
        await asyncio.wait([carrying, first._flushing], return_when=asyncio.FIRST_COMPLETED)
        for task in (carrying, first._flushing):
            task.cancel()
        await asyncio.gather(carrying, first._flushing, return_exceptions=True)
    return dying.count >= at


@pytest.mark.thorough
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_run_ends_soundly_whatever_commit_its_process_dies_at(
    monkeypatch, stage, start, user, written, after
):
    at = 0
    died = True
    while died:
        at += 1
        written.clear()
        run = await start(f"at {at}")
        died = await die_and_carry_on(monkeypatch, stage, run, at, after=after)

        async with stage(Model()) as runtime:
            await runtime.carry(run)
            log = await runtime.log(run)
            await unit_of_work(assert_sound, run, log)
        assert len(written) == len(set(written)), f"a side effect came twice at {at}"
        kept = await unit_of_work(Message.objects.filter(id=run.message_id).count)
        assert kept == 1
    assert at > 8
