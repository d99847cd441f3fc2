import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat import events
from chat.events import LoggedEvent
from chat.runs import lifecycle
from chat.runs import runtime as runtime_module
from chat.testing import ScriptedProvider, calls, says
from chat.types import TextDelta
from tools.threads import unit_of_work

pytestmark = pytest.mark.django_db


async def followed(runtime, run, after=None):
    seen: list[LoggedEvent] = []
    async for batch in runtime.events(run.id, after):
        seen.extend(batch or ())
    return seen


async def test_events_replay_of_a_finished_run_equals_what_was_live(stage, start):
    run = await start()
    provider = ScriptedProvider(calls(("nothing", {}), text="Hm."), says("Good morning", pieces=5))
    async with stage(provider) as runtime:
        live = asyncio.create_task(followed(runtime, run))
        await runtime.carry(run)
        seen = await asyncio.wait_for(live, 5)
        replayed = await followed(runtime, run)

    assert seen == replayed
    assert seen[-1].event.name == "done"
    assert [item.seq for item in seen] == list(range(1, len(seen) + 1))


async def test_events_resume_strictly_after_every_point(stage, start):
    run = await start()
    async with stage(ScriptedProvider(says("one two three", pieces=3))) as runtime:
        await runtime.carry(run)
        whole = await followed(runtime, run)
        for n, item in enumerate(whole[:-1]):
            rest = await followed(runtime, run, (item.attempt, item.seq))
            assert rest == whole[n + 1 :]


async def test_events_listener_that_joins_in_the_middle_misses_nothing(stage, start):
    run = await start()
    gates = [asyncio.Event() for _ in range(4)]
    script = [item for gate in gates for item in (TextDelta("x"), gate)]
    provider = ScriptedProvider([*script, *says("end")])
    async with stage(provider) as runtime:
        carrying = asyncio.create_task(runtime.carry(run))
        listeners = []
        for gate in gates:
            listeners.append(asyncio.create_task(followed(runtime, run)))
            await asyncio.sleep(0)
            gate.set()
        await carrying
        whole = await followed(runtime, run)
        for listener in listeners:
            assert await asyncio.wait_for(listener, 5) == whole


async def test_events_listener_hears_of_a_run_that_another_process_closed(stage, start, user):
    run = await start()
    async with stage(None) as runtime:
        listening = asyncio.create_task(followed(runtime, run))
        while runtime.hub.is_idle:
            await asyncio.sleep(0)
        await unit_of_work(lifecycle.run_stop, owner=user, run_id=run.id)
        runtime.hub.news_in_log(run.id)
        seen = await asyncio.wait_for(listening, 5)

    assert [item.event.name for item in seen] == ["done"]


async def test_events_says_when_a_keep_alive_is_due(stage, start, monkeypatch):
    monkeypatch.setattr(runtime_module, "KEEP_ALIVE_SECONDS", 0.005)
    run = await start()
    async with stage(None) as runtime:
        async with asyncio.timeout(5):
            async for batch in runtime.events(run.id):
                if batch is None:
                    break

    assert runtime.hub.is_idle


async def test_events_finds_what_was_stored_and_never_told(stage, start):
    run = await start()
    gate = asyncio.Event()
    async with stage(ScriptedProvider([TextDelta("a"), gate, *says("b")])) as runtime:
        carrying = asyncio.create_task(runtime.carry(run))
        listening = asyncio.create_task(followed(runtime, run))
        while "text_delta" not in [i.event.name for i in await runtime.log(run)]:
            await asyncio.sleep(0)
        publish = runtime.publish
        lost: list[tuple[LoggedEvent, ...]] = []

        def forget_once(logged, *, stored):
            if not lost and stored:
                lost.append(logged)
            else:
                publish(logged, stored=stored)

        runtime.publish = forget_once
        gate.set()
        await carrying
        seen = await asyncio.wait_for(listening, 5)

    assert lost
    assert [item.seq for item in seen] == list(range(1, len(seen) + 1))
    assert isinstance(seen[-1].event, events.Done)


@given(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=8))
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_events_texts_join_to_the_message_however_they_were_cut(stage, start, pieces):
    clean = [p.replace("\x00", "") or "x" for p in pieces]
    run = await start()
    script = [*(TextDelta(p) for p in clean), says("")[-1]]
    async with stage(ScriptedProvider(script)) as runtime:
        await runtime.carry(run)
        seen = await followed(runtime, run)

    text = "".join(i.event.text for i in seen if isinstance(i.event, events.TextDelta))
    assert text == "".join(clean)
