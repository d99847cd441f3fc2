"""Processes that can be killed at any moment, with a model on strings in each.

Nothing here waits for time: a process moves until its model or its tool waits for the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any

from procrastinate.job_context import AbortReason
from procrastinate.jobs import Status

from chat.exceptions import HandBack
from chat.models import Run
from chat.types import Completion, ModelRequest, TextDelta, ThinkingDelta
from tests.chat.runs.conftest import Stage
from tests.chat.runs.machine import jobs
from tools.threads import unit_of_work

if TYPE_CHECKING:
    from tests.chat.runs.machine.account import Stance

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

    def __init__(
        self, run: Run, *, on_request: Callable[[ModelRequest], None], stance: Stance
    ) -> None:
        super().__init__(self)
        self.run_id = run.id
        self.on_request = on_request
        #: What was said about tools when it began.
        self.stance = stance
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
        self.worker_id = jobs.worker_begin()
        self.job = jobs.job_fetch(run.job_id, self.worker_id)
        self.carrying: asyncio.Task[None] | None = None

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
        return self.carrying is not None and self.carrying.done()

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
        assert self.carrying is not None
        self.reason = reason
        self.carrying.cancel()
        await asyncio.wait({self.carrying}, timeout=PATIENCE_SECONDS)
        await self.settle()

    async def kill(self) -> None:
        self.is_dead = True
        if self.carrying is None:
            return
        for task in (self.carrying, self.flushing):
            # Again and again: each of its clean-ups is cut short too.
            while not task.done():
                task.cancel()
                await asyncio.sleep(0)
        await asyncio.gather(self.carrying, self.flushing, return_exceptions=True)

    async def _rest(self) -> None:
        """Until it waits for the machine, or is over."""
        assert self.carrying is not None
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
            await self._leave()
        elif self.writes.is_set():
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.flusher.settled(self.run_id)

    async def _leave(self) -> None:
        """As a worker does with a job that came to its end, or was handed back."""
        assert self.carrying is not None
        assert self.job is not None
        error = None if self.carrying.cancelled() else self.carrying.exception()
        if isinstance(error, Died):
            await self.kill()
            return
        self.flusher.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.flushing
        assert error is None or isinstance(error, HandBack), error
        if error is None:
            await jobs.claimed.finish_job(self.job, Status.SUCCEEDED, delete_job=True)
        else:
            await jobs.claimed.retry_job(self.job)
