"""The processes that are killed: workers, and one that decides on approvals, on one database."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from ctypes import c_int
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from typing import Any

from tests.chaos.moments import MOMENTS

PACE = 0.01
WORKERS = 3
START_SECONDS = 30
NOBODY = -1

#: What a forked process need not import anew; the first of them sets Django up.
PRELOADED = ["tests.chaos.worker", "chat.runs.runtime", "chat.runs.jobs", "chat.providers.demo"]


@dataclass
class _Worker:
    process: ForkServerProcess
    at: c_int
    number: c_int | None = None

    @property
    def is_ready(self) -> bool:
        return self.number is not None and self.number.value > 0 and self.process.is_alive()


class Crowd:
    """``deaths`` counts the moments at which processes killed themselves.

    ``kills`` is of workers, however they died.
    """

    def __init__(self, database: str, owner_id: int) -> None:
        self._database = database
        self._owner_id = owner_id
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)
        self._workers: list[_Worker] = []
        self._approver: _Worker | None = None
        self._killed = self._context.RawValue("d", 0.0)
        self.deaths: Counter[str] = Counter()
        self.kills = 0
        self.approver_kills = 0
        self.violations: list[str] = []

    def fill(self) -> None:
        """Bury who is dead and start who is missing."""
        for worker in [each for each in self._workers if not each.process.is_alive()]:
            self._workers.remove(worker)
            self._bury(worker)
        if self._approver is not None and not self._approver.process.is_alive():
            self._bury_approver(self._approver)
        while len(self._workers) < WORKERS:
            self._workers.append(self._start_worker())
        if self._approver is None:
            from tests.chaos.approver import decide

            at = self._context.RawValue("i", NOBODY)
            arguments = (self._database, self._owner_id, self._killed, at)
            self._approver = _Worker(self._start(decide, arguments), at)

    def kill_one(self, look: Callable[[int], None]) -> None:
        """Kill a worker; ``look`` is called with its number while it stands still."""
        worker = self._someone()
        if worker is None or worker.process.pid is None:
            return
        self._workers.remove(worker)
        os.kill(worker.process.pid, signal.SIGSTOP)
        look(worker.number.value if worker.number else 0)
        worker.process.kill()
        worker.process.join()
        self._bury(worker)

    def kill_approver(self) -> None:
        if self._approver is not None:
            self._approver.process.kill()
            self._approver.process.join()
            self._bury_approver(self._approver)

    def end(self) -> None:
        """Whoever is left goes too; nothing is cut off by it, and nothing counted."""
        for worker in [*self._workers, self._approver]:
            if worker is not None:
                worker.process.kill()
                worker.process.join()

    def leave_alone(self) -> None:
        """Nobody is killed from outside any more: what waits for a kill waits no longer."""
        self._killed.value = float("inf")

    def _someone(self) -> _Worker | None:
        """A worker that takes runs, None where there comes none."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if ready := [worker for worker in self._workers if worker.is_ready]:
                return random.choice(ready)
            self.fill()
            time.sleep(0.01)
        self.violations.append("no worker came up")
        return None

    def _start_worker(self) -> _Worker:
        from tests.chaos.worker import work

        number, at = self._context.RawValue("i", 0), self._context.RawValue("i", NOBODY)
        return _Worker(self._start(work, (self._database, PACE, number, at)), at, number)

    def _start(self, target: Callable[..., None], arguments: tuple[Any, ...]) -> ForkServerProcess:
        process = self._context.Process(target=target, args=arguments, daemon=True)
        process.start()
        return process

    def _bury_approver(self, approver: _Worker) -> None:
        self._approver = None
        self._count(approver)
        self.approver_kills += 1

    def _bury(self, worker: _Worker) -> None:
        self._count(worker)
        self.kills += 1
        self._killed.value = max(self._killed.value, time.time())

    def _count(self, worker: _Worker) -> None:
        if worker.at.value != NOBODY:
            self.deaths[MOMENTS[worker.at.value]] += 1
        if worker.process.exitcode != -signal.SIGKILL:
            self.violations.append(f"a process ended with {worker.process.exitcode}")
