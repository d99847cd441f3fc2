"""Workers are killed with ``kill -9`` at random moments; every run must end soundly all the same.

    .venv/bin/python -m tests.chaos.kill_workers --cuts 300

Makes a database of its own on the embedded server of the tests, starts runs of the scripted demo
(each makes a note and finds it), keeps two workers alive and kills one of them again and again,
until so many executions were cut off (a kill cuts off every run of its worker, each at another
moment of its life). Heartbeats are 25 times as fast as in operation. Prints what it counted and
fails on any violation.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from uuid import UUID

PACE = 0.01
WORKERS = 2
ACTIVE_RUNS = 12
START_SECONDS = 30


@dataclass
class Report:
    kills: int = 0
    runs: int = 0
    cut_off: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    unknown_calls: int = 0
    violations: list[str] = field(default_factory=list)


class Crowd:
    """Worker processes on one database."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.chaos.worker"])
        self._workers: list[ForkServerProcess] = []

    def fill(self) -> None:
        from tests.chaos.worker import work

        while len(self._workers) < WORKERS:
            ready = self._context.Event()
            arguments = (self._database, PACE, ready)
            worker = self._context.Process(target=work, args=arguments, daemon=True)
            worker.start()
            self._workers.append(worker)
            ready.wait(START_SECONDS)

    def kill_one(self) -> None:
        worker = self._workers.pop(random.randrange(len(self._workers)))
        worker.kill()
        worker.join()

    def kill_all(self) -> None:
        while self._workers:
            self.kill_one()


def chaos(*, database: str, cuts: int, seed: int, seconds: float) -> Report:
    """Start runs and kill workers until ``cuts`` executions were cut off, then let all end."""
    from django.contrib.auth import get_user_model

    random.seed(seed)
    report = Report()
    runs: list[UUID] = []
    owner = get_user_model().objects.create_user(f"chaos-{seed}")
    crowd = Crowd(database)
    deadline = time.monotonic() + seconds
    try:
        while _cut_off(runs) < cuts and time.monotonic() < deadline:
            crowd.fill()
            while _active(runs) < ACTIVE_RUNS:
                runs.append(_start(owner, len(runs)))
            time.sleep(random.uniform(0.3, 1.5))
            crowd.kill_one()
            report.kills += 1
        while _active(runs) and time.monotonic() < deadline:
            crowd.fill()
            time.sleep(0.2)
    finally:
        crowd.kill_all()
    report.runs, report.cut_off = len(runs), _cut_off(runs)
    for number, run_id in enumerate(runs):
        _judge(report, run_id, number)
    return report


def _start(owner: object, number: int) -> UUID:
    from chat.runs.lifecycle import run_start

    content = f"make a note called Item{number} with milk, then find it"
    return run_start(owner=owner, content=content).id  # type: ignore[arg-type]


def _active(runs: list[UUID]) -> int:
    from chat.models import ACTIVE_STATUSES, Run

    return Run.objects.filter(id__in=runs, status__in=ACTIVE_STATUSES).count()


def _cut_off(runs: list[UUID]) -> int:
    """Executions that did not come to their end: attempts but the last one of each run."""
    from chat.models import Run

    return sum(
        attempt - 1
        for attempt in Run.objects.filter(id__in=runs, attempt__gt=0).values_list(
            "attempt", flat=True
        )
    )


def _judge(report: Report, run_id: UUID, number: int) -> None:
    from chat.models import Message, Run, ToolCall
    from chat.runs.event_log import events_after
    from notes.models import Note
    from tests.chat.runs.invariants import assert_sound

    run = Run.objects.get(id=run_id)
    report.reasons[run.stop_reason or run.status] = (
        report.reasons.get(run.stop_reason or run.status, 0) + 1
    )
    calls = ToolCall.objects.filter(message__run=run)
    report.unknown_calls += calls.filter(status="unknown").count()
    made = Note.objects.filter(owner_id=run.owner_id, title=f"Item{number}").count()
    creates = calls.filter(name="note_create").count()
    if made > creates or made + calls.filter(name="note_create", is_error=True).count() < creates:
        report.violations.append(f"{run_id}: {creates} calls made {made} notes")
    if not Message.objects.filter(id=run.message_id).exists():
        report.violations.append(f"{run_id}: the user's message is gone")
    try:
        assert_sound(run, events_after(run_id=run_id, position=(0, 0), limit=100_000))
    except AssertionError as error:
        report.violations.append(f"{run_id}: {str(error)[:200] or 'unsound'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=900)
    asked = parser.parse_args()
    from django.db import connections
    from django.test.utils import setup_databases, teardown_databases

    import tests.chaos.worker  # noqa: F401 - sets Django up

    databases = setup_databases(verbosity=0, interactive=False)
    try:
        report = chaos(
            database=connections["default"].settings_dict["NAME"],
            cuts=asked.cuts,
            seed=asked.seed,
            seconds=asked.seconds,
        )
    finally:
        connections.close_all()
        teardown_databases(databases, verbosity=0)
    print(report)  # noqa: T201
    if report.violations or report.cut_off < asked.cuts:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
