"""Processes that can be killed at any moment, a model on strings in each, and who listens to them.

Nothing here waits for time: a process moves until its model or its tool waits for the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from typing import Any

from django.db import connection
from procrastinate.job_context import AbortReason

from chat.api.following import follow
from chat.events import Done, LoggedEvent, Snapshot
from chat.exceptions import HandBack
from chat.loop.folding import fold
from chat.runs import event_log
from chat.types import Completion, ModelRequest, TextDelta, ThinkingDelta
from tests.chat.runs.conftest import Stage
from tools.threads import unit_of_work

#: Whatever happens is over long before; a machine that hangs says where.
PATIENCE_SECONDS = 20

process: ContextVar[Attempt] = ContextVar("process")


class Died(BaseException):
    """The process is gone: nothing of it goes on."""


async def unit_of_process(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """In the place of ``unit_of_work`` in an executor: the dead do not write."""
    carrying = process.get()
    carrying.die_here(before=True)
    done = await unit_of_work(function, *args, **kwargs)
    carrying.die_here(before=False)
    return done


async def unit_of_flusher(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    carrying = process.get()
    await carrying.writes.wait()
    if carrying.is_dead:
        raise Died
    return await unit_of_work(function, *args, **kwargs)


class Attempt(Stage):
    """A process that carries one run. Its model says what the machine puts into its mouth."""

    name = "puppet"

    def __init__(self, run_id, on_request: Callable[[ModelRequest], None]) -> None:
        super().__init__(self)
        self.run_id = run_id
        self.on_request = on_request
        self.reads: asyncio.Queue[Any] = asyncio.Queue()
        self.idle = asyncio.Event()
        self.go = asyncio.Event()
        self.writes = asyncio.Event()
        self.writes.set()
        self.in_tool = False
        self.said: list[TextDelta | ThinkingDelta] = []
        self.reason: AbortReason | None = None
        self.is_dead = False
        self.is_told_to_stop = False
        #: It dies at its so manyth commit from now, before or after it.
        self.fuse: tuple[int, bool] | None = None
        self.worker_id = _one("INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id")
        self.job_id = _one(
            "UPDATE procrastinate_jobs AS job SET status = 'doing', worker_id = %s FROM chat_run "
            "WHERE chat_run.id = %s AND job.id = job_id AND job.status IN ('todo', 'doing') "
            "RETURNING job.id",
            self.worker_id,
            run_id,
        )

    async def stream(self, request):
        self.on_request(request)
        self.said = []
        while True:
            self.idle.set()
            read = await self.reads.get()
            if isinstance(read, Exception):
                raise read
            yield (read,)
            if isinstance(read, Completion):
                return

    async def work_in_tool(self) -> None:
        """What a tool does that takes as long as the machine wants."""
        self.in_tool = True
        self.idle.set()
        await self.go.wait()
        self.go.clear()
        self.in_tool = False

    def die_here(self, *, before: bool) -> None:
        if self.fuse is not None and self.fuse[1] == before:
            self.fuse = None if not self.fuse[0] else (self.fuse[0] - 1, before)
            self.is_dead = self.is_dead or self.fuse is None
        if self.is_dead:
            raise Died

    async def begin(self) -> None:
        context = copy_context()
        context.run(process.set, self)
        create = asyncio.get_running_loop().create_task
        self.flushing = create(self.flusher.run(), context=context)
        self.carrying = create(self._carry(), context=context)
        await self.settle()

    async def _carry(self) -> None:
        run = type("Named", (), {"id": self.run_id})
        await self.carry(run, abort_reason=lambda: self.reason)

    @property
    def is_over(self) -> bool:
        return self.carrying.done()

    async def feed(self, *reads: Any) -> None:
        for read in reads:
            self.idle.clear()
            self.reads.put_nowait(read)
            if isinstance(read, TextDelta | ThinkingDelta):
                self.said.append(read)
            await self._rest()
        await self.settle()

    def complete(self, **values: Any) -> Completion:
        texts = "".join(d.text for d in self.said if isinstance(d, TextDelta))
        thoughts = "".join(d.text for d in self.said if isinstance(d, ThinkingDelta))
        return Completion(text=texts, thinking=thoughts, **values)

    async def tool_return(self) -> None:
        self.idle.clear()
        self.go.set()
        await self.settle()

    async def abort(self, reason: AbortReason) -> None:
        self.reason = reason
        self.carrying.cancel()
        await asyncio.wait({self.carrying}, timeout=PATIENCE_SECONDS)
        await self.settle()

    async def kill(self) -> None:
        self.is_dead = True
        for task in (self.carrying, self.flushing):
            # Again and again: each of its clean-ups is cut short too.
            while not task.done():
                task.cancel()
                await asyncio.sleep(0)
        await asyncio.gather(self.carrying, self.flushing, return_exceptions=True)

    async def _rest(self) -> None:
        """Until it waits for the machine, or is over."""
        idle = asyncio.create_task(self.idle.wait())
        done, _ = await asyncio.wait(
            {self.carrying, idle},
            return_when=asyncio.FIRST_COMPLETED,
            timeout=PATIENCE_SECONDS,
        )
        assert done, "the process hangs"
        idle.cancel()

    async def settle(self) -> None:
        await self._rest()
        if self.is_over:
            error = None if self.carrying.cancelled() else self.carrying.exception()
            if isinstance(error, Died):
                await self.kill()
                return
            self.flusher.close()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.flushing
            assert error is None or isinstance(error, HandBack), error
            await unit_of_work(self.job_leave, "todo" if error else "succeeded")
        elif self.writes.is_set():
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.flusher.settled(self.run_id)

    def job_leave(self, status: str) -> None:
        """As a worker does with a job that is still its own."""
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE procrastinate_jobs SET status = %s::procrastinate_job_status, "
                "worker_id = NULL, abort_requested = false "
                "WHERE id = %s AND worker_id = %s AND status = 'doing'",
                [status, self.job_id, self.worker_id],
            )


class Ear:
    """A listener of one run; what it has seen is all that it knows."""

    def __init__(self, run_id) -> None:
        self.run_id = run_id
        self.seen: list[LoggedEvent] = []
        self.news = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.stage: Stage | None = None

    @property
    def last(self) -> tuple[int, int]:
        return (self.seen[-1].attempt, self.seen[-1].seq) if self.seen else event_log.START

    async def connect(self, stage: Stage) -> None:
        self.stage = stage
        self.task = asyncio.create_task(self._listen(stage))

    async def _listen(self, stage: Stage) -> None:
        resume = "{}-{}".format(*self.last) if self.seen else ""
        async for batch in follow(stage, self.run_id, resume):
            self.seen.extend(batch or ())
            self.news.set()

    async def hang_up(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        self.task = self.stage = None

    async def hear(self, last: tuple[int, int]) -> None:
        """Until it has seen all of the log, or its stream ended."""
        assert self.task is not None
        while not self.task.done() and self.last != last:
            self.news.clear()
            waiting = asyncio.create_task(self.news.wait())
            done, _ = await asyncio.wait(
                {waiting, self.task},
                return_when=asyncio.FIRST_COMPLETED,
                timeout=PATIENCE_SECONDS,
            )
            waiting.cancel()
            assert done, f"the listener waits at {self.last}, and the log is at {last}"
        if self.task.done():
            self.task.result()

    def assert_each_once(self, log: Sequence[LoggedEvent], *, is_folded: bool) -> None:
        """Each event once and in order, or a snapshot and then each."""
        said = [item for item in log if (item.attempt, item.seq) <= self.last]
        stored = {(item.attempt, item.seq) for item in said}
        keys = [(item.attempt, item.seq) for item in self.seen]
        snapshots = [i for i, item in enumerate(self.seen) if isinstance(item.event, Snapshot)]
        since = snapshots[-1] if snapshots else 0
        later = keys[since:]
        assert later == sorted(set(later)), "an event came twice, or out of order"
        if not is_folded:
            start = keys[since] if snapshots else event_log.START
            after = [key for key in ((i.attempt, i.seq) for i in said) if key > start]
            heard_keys = [key for key in later if key in stored and key > start]
            assert heard_keys == after, "an event was left out"
        heard, told = (fold(i.event for i in part) for part in (self.seen[since:], said))
        assert heard == told
        assert [i.event.name for i in self.seen].count("done") <= 1
        if self.task is not None and self.task.done():
            assert isinstance(self.seen[-1].event, Done)


def _one(sql: str, *values: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        row = cursor.fetchone()
    return row and row[0]
