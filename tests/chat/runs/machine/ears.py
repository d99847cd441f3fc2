"""Who listens to a run: what they have seen is all that they know."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from chat.api.following import follow
from chat.events import Done, LoggedEvent, Snapshot
from chat.loop.folding import fold
from chat.runs import event_log
from tests.chat.runs.conftest import Stage
from tests.chat.runs.machine.processes import PATIENCE_SECONDS


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
