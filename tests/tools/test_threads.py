import asyncio
import contextvars
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from django.db import OperationalError, connection, connections
from psycopg.errors import QueryCanceled

from tools import threads
from tools.threads import chore, tool_thread, unit_of_work

flavour = contextvars.ContextVar("flavour", default="plain")


async def wait_for(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0)


@pytest.mark.parametrize("run", [unit_of_work, chore, tool_thread])
async def test_thread_gives_back_result_and_exceptions(run):
    def divide(number: int, *, by: int) -> float:
        return number / by

    assert await run(divide, 6, by=3) == 2
    with pytest.raises(ZeroDivisionError):
        await run(divide, 6, by=0)


@pytest.mark.parametrize("run", [unit_of_work, chore, tool_thread])
async def test_thread_keeps_the_callers_context(run):
    flavour.set("caller's")
    assert await run(flavour.get) == "caller's"
    await run(flavour.set, "thread's")
    assert flavour.get() == "caller's"


@pytest.mark.parametrize("run", [unit_of_work, chore, tool_thread])
async def test_thread_ends_when_stop_iteration_leaves_the_work(run):
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(run(next, iter(())), timeout=10)


@pytest.mark.parametrize("run", [unit_of_work, chore, tool_thread])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.django_db(transaction=True)
async def test_thread_gives_its_connection_back(run, fails):
    seen = []

    def query() -> None:
        here = connections["default"]
        with here.cursor() as cursor:
            cursor.execute("SELECT 1")
        seen.append(here)
        if fails:
            raise KeyError

    if fails:
        with pytest.raises(KeyError):
            await run(query)
    else:
        await run(query)
    (used,) = seen
    assert used.connection is None


async def test_unit_of_work_waits_for_its_thread_when_its_caller_is_cancelled():
    started, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        go_on.wait(10)
        ended.set()

    task = asyncio.create_task(unit_of_work(work))
    await wait_for(started)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_unit_of_work_re_raises_cancellation_also_when_the_work_fails(caplog):
    started, go_on = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        go_on.wait(10)
        raise KeyError

    task = asyncio.create_task(unit_of_work(work))
    await wait_for(started)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert caplog.records == []


class Sleep:
    """A unit that waits in PostgreSQL for a minute, and what became of it."""

    def __init__(self) -> None:
        self.session = 0
        self.error: Exception | None = None

    def __call__(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                self.session = cursor.fetchone()[0]
                cursor.execute("SELECT pg_sleep(60)")
        except OperationalError as error:
            self.error = error

    async def begun(self) -> None:
        while not await unit_of_work(self._is_asleep):
            await asyncio.sleep(0.01)

    def _is_asleep(self) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'",
                [self.session],
            )
            return cursor.fetchone() is not None


@pytest.mark.parametrize("run", [unit_of_work, chore])
@pytest.mark.django_db(transaction=True)
async def test_statement_is_cancelled_after_its_caller_is(run):
    sleep = Sleep()
    task = asyncio.create_task(run(sleep))
    await asyncio.wait_for(sleep.begun(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 20)
    assert sleep.error is not None
    assert isinstance(sleep.error.__cause__, QueryCanceled)


async def test_chore_that_is_cancelled_waits_for_its_thread_a_moment_only(monkeypatch):
    monkeypatch.setattr(threads, "CHORE_SECONDS", 0.01)
    started, go_on = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        go_on.wait(30)
        raise KeyError

    task = asyncio.create_task(chore(work))
    await wait_for(started)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 20)
    go_on.set()


async def test_units_go_on_while_every_thread_for_chores_is_taken():
    started, go_on = threading.Semaphore(0), threading.Event()

    def work() -> None:
        started.release()
        go_on.wait(30)

    chores = [asyncio.create_task(chore(work)) for _ in range(20)]
    for _ in range(threads._chores._max_workers):
        while not started.acquire(blocking=False):
            await asyncio.sleep(0)
    assert await asyncio.wait_for(unit_of_work(divmod, 7, 2), 20) == (3, 1)
    go_on.set()
    await asyncio.gather(*chores)


async def test_tool_thread_does_not_wait_when_its_caller_is_cancelled():
    started, go_on = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        go_on.wait(10)

    task = asyncio.create_task(tool_thread(work))
    await wait_for(started)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not go_on.is_set()
    go_on.set()


async def test_tool_thread_never_starts_what_was_given_up_in_the_queue():
    ran: list[int] = []
    go_on = threading.Event()
    started = threading.Semaphore(0)

    def block() -> None:
        started.release()
        go_on.wait(10)

    size = threads._tools._max_workers
    busy = [asyncio.create_task(tool_thread(block)) for _ in range(size)]
    for _ in range(size):
        while not started.acquire(blocking=False):
            await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(tool_thread(ran.append, 1), timeout=0.01)
    go_on.set()
    await asyncio.gather(*busy)
    await tool_thread(ran.append, 2)
    assert ran == [2]


@pytest.mark.thorough
def test_process_ends_cleanly_after_units_were_used():
    script = """
        import asyncio, django
        import pytest  # chooses the database server of the tests
        django.setup()
        from django.db import connection
        from tools.threads import tool_thread, unit_of_work

        def query():
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                return cursor.fetchone()[0]

        async def main():
            return await unit_of_work(query) + await tool_thread(query)

        print(asyncio.run(main()))
    """
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={"DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
    assert time.monotonic() - began < 30
