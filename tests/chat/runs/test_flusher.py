import asyncio
from uuid import UUID

import pytest
from django.db import InterfaceError, OperationalError

from chat import events
from chat.events import LoggedEvent
from chat.runs import flusher as flusher_module
from chat.runs.flusher import Flusher

RUN, OTHER = UUID(int=1), UUID(int=2)


def logged(seq, run_id=RUN):
    return LoggedEvent(run_id, 1, seq, events.Notice(code="n", text=str(seq)))


@pytest.fixture
def written(monkeypatch):
    """The groups that were written; ``written.gate`` holds writes back while it is clear."""
    groups = Groups()

    async def unit_of_work(_store, *, logged, origin):
        await groups.gate.wait()
        if groups.failures:
            raise groups.failures.pop()
        groups.append(tuple(logged))

    monkeypatch.setattr(flusher_module, "unit_of_work", unit_of_work)
    monkeypatch.setattr(flusher_module, "RETRY_SECONDS", 0.001)
    return groups


class Groups(list):
    def __init__(self):
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.failures: list = []


@pytest.fixture
async def writer(written):
    writer = Flusher(origin="x", interval=0.001)
    task = asyncio.create_task(writer.run())
    yield writer
    writer.close()
    await asyncio.wait_for(task, 5)


async def test_flusher_writes_all_runs_of_a_moment_in_one_group(writer, written):
    writer.add((logged(1), logged(2)))
    writer.add((logged(1, OTHER),))
    await asyncio.wait_for(writer.settled(RUN), 5)

    assert written == [(logged(1), logged(2), logged(1, OTHER))]


async def test_flusher_is_settled_only_after_the_write(writer, written):
    written.gate.clear()
    writer.add((logged(1),))
    waiting = asyncio.create_task(writer.settled(RUN))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    written.gate.set()
    await asyncio.wait_for(waiting, 5)
    assert written == [(logged(1),)]


async def test_flusher_tries_again_when_the_database_is_away(writer, written):
    written.failures = [OperationalError("gone"), InterfaceError("closed")]
    writer.add((logged(1),))
    await asyncio.wait_for(writer.settled(RUN), 5)

    assert written == [(logged(1),)]


async def test_flusher_lends_what_is_unwritten_and_writes_it_if_it_comes_back(writer, written):
    written.gate.clear()
    writer.add((logged(1),))
    await asyncio.sleep(0.01)
    writer.add((logged(2),))
    written.gate.set()
    with pytest.raises(RuntimeError):
        async with writer.detached(RUN) as lent:
            assert lent == (logged(2),)
            waiting = asyncio.create_task(writer.settled(RUN))
            await asyncio.sleep(0)
            assert not waiting.done()
            raise RuntimeError
    await asyncio.wait_for(waiting, 5)

    assert written == [(logged(1),), (logged(2),)]


async def test_flusher_writes_what_is_pending_when_it_is_closed(written):
    writer = Flusher(origin="x", interval=60)
    task = asyncio.create_task(writer.run())
    writer.add((logged(1),))
    await asyncio.wait_for(writer.settled(RUN), 5)
    writer.add((logged(2),))
    writer.close()
    await asyncio.wait_for(task, 5)

    assert written == [(logged(1),), (logged(2),)]


def said(seq, run_id=RUN):
    return LoggedEvent(run_id, 1, seq, events.TextDelta(message_id=run_id, text=str(seq)))


@pytest.fixture
async def slow_writer(written):
    """It gathers for a minute: what it writes sooner is not kept waiting."""
    writer = Flusher(origin="x", interval=60.0)
    task = asyncio.create_task(writer.run())
    yield writer
    writer.close()
    await asyncio.wait_for(task, 5)


async def test_flusher_keeps_the_first_text_of_a_run_waiting_for_no_gathering(slow_writer, written):
    slow_writer.add((logged(1),))
    await asyncio.wait_for(slow_writer.settled(RUN), 5)
    slow_writer.add((said(2),))
    await asyncio.wait_for(slow_writer.settled(RUN), 5)

    assert written == [(logged(1),), (said(2),)]


async def test_flusher_writes_a_text_at_once_after_silence(slow_writer, written, monkeypatch):
    for seq in (1, 2):
        slow_writer.add((said(seq),))
        if seq == 1:
            await asyncio.wait_for(slow_writer.settled(RUN), 5)
    monkeypatch.setattr(flusher_module, "SILENT_SECONDS", -1.0)
    slow_writer.add((said(3),))
    await asyncio.wait_for(slow_writer.settled(RUN), 5)

    assert written == [(said(1),), (said(2), said(3))]


async def test_flusher_gathers_what_a_run_goes_on_to_say(slow_writer, written):
    slow_writer.add((said(1),))
    await asyncio.wait_for(slow_writer.settled(RUN), 5)
    for seq in (2, 3):
        slow_writer.add((said(seq),))
    for _ in range(20):
        await asyncio.sleep(0)
    assert written == [(said(1),)]

    slow_writer.add((said(1, OTHER),))
    await asyncio.wait_for(slow_writer.settled(OTHER), 5)

    assert written == [(said(1),), (said(2), said(3), said(1, OTHER))]
