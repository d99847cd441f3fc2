"""Workers are killed with ``kill -9`` at random moments; every run must end soundly all the same.

    .venv/bin/python -m tests.chaos.kill_workers --kills 300

Makes a database of its own on the embedded server of the tests and starts runs of the scripted
demo: half of them make a note and find it, the others ask before they make a note and before they
append to it. A process apart decides: it approves, denies, edits, or waits until somebody was
killed. Three workers are kept alive and killed again and again, from outside (each kill cuts off
every run of its worker, at another moment of its life) and by themselves at the short moments of
asking and deciding (``moments``); so is the one that decides. Heartbeats are 25 times as fast as
in operation. Prints what it counted and fails on any violation.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

from tests.chaos.crowd import Crowd
from tests.chaos.moments import MOMENTS

ACTIVE_RUNS = 12
END_SECONDS = 120

_STATES = """
SELECT CASE
    WHEN run.status = 'awaiting_approval' THEN 'awaiting a decision'
    WHEN run.status = 'queued' AND run.attempt > 0 THEN 'queued after the last decision'
    WHEN run.status = 'queued' THEN 'queued'
    WHEN call.runs AND call.approved THEN 'in an approved call'
    WHEN call.runs THEN 'in a call'
    WHEN call.approved THEN 'before an approved call'
    WHEN call.runs IS NOT NULL THEN 'before a call, or asking'
    ELSE 'streaming' END
FROM chat_run AS run
LEFT JOIN procrastinate_jobs AS job ON job.id = run.job_id
LEFT JOIN LATERAL (
    SELECT bool_or(open.status = 'running') AS runs,
        bool_or(approval.decision IS NOT DISTINCT FROM 'approved') AS approved
    FROM chat_toolcall AS open
    JOIN chat_message AS message ON message.id = open.message_id AND message.run_id = run.id
    LEFT JOIN chat_approval AS approval ON approval.call_id = open.id
    WHERE open.status IN ('pending', 'awaiting_approval', 'running')
) AS call ON true
WHERE run.status <> 'finished' AND (run.status <> 'running' OR job.worker_id = %s)
"""


@dataclass
class Report:
    """``kills`` of workers, ``met`` in which state their runs and those that wait were.

    ``deaths`` are those of ``kills`` and ``approver_kills`` that came from inside.
    """

    kills: int = 0
    approver_kills: int = 0
    met: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    cut_off: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    unknown_calls: int = 0
    violations: list[str] = field(default_factory=list)


def chaos(*, database: str, kills: int, seed: int, seconds: float) -> Report:
    """Start runs and kill workers until there were so many ``kills``, then let all end."""
    from django.contrib.auth import get_user_model

    from tests.chaos.judging import judge

    random.seed(seed)
    report = Report()
    runs: list[UUID] = []
    users = get_user_model().objects
    owner = users.create_user(f"chaos-{seed}")
    careful = users.create_user(f"careful-{seed}", approval_mode="careful")
    crowd = Crowd(database, careful.pk)
    deadline = time.monotonic() + seconds
    try:
        while crowd.kills < kills and time.monotonic() < deadline:
            crowd.fill()
            while _active(runs) < ACTIVE_RUNS:
                runs.append(_start(careful if len(runs) % 2 else owner, len(runs)))
            time.sleep(random.uniform(0.4, 1.6))
            if random.random() < 0.25:
                crowd.kill_approver()
            crowd.kill_one(lambda worker: report.met.update(_states(worker)))
        crowd.leave_alone()
        deadline = time.monotonic() + END_SECONDS
        while _active(runs) and time.monotonic() < deadline:
            crowd.fill()
            time.sleep(0.2)
    finally:
        crowd.end()
    report.kills, report.approver_kills = crowd.kills, crowd.approver_kills
    report.runs, report.cut_off, report.deaths = len(runs), _cut_off(runs), crowd.deaths
    report.violations += crowd.violations
    for number, run_id in enumerate(runs):
        judge(report, run_id, number)
    return report


def _states(worker: int) -> list[str]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(_STATES, [worker])
        return [row[0] for row in cursor.fetchall()]


def _start(owner: object, number: int) -> UUID:
    from chat.runs.lifecycle import run_start

    content = f"make a note called Item{number} with milk, then "
    content += 'append "bread" to it' if number % 2 else "find it"
    return run_start(owner=owner, content=content).id  # type: ignore[arg-type]


def _active(runs: list[UUID]) -> int:
    from chat.models import ACTIVE_STATUSES, Run

    return Run.objects.filter(id__in=runs, status__in=ACTIVE_STATUSES).count()


def _cut_off(runs: list[UUID]) -> int:
    """Executions that came to no end: neither the run's last one, nor one that asked a person."""
    from chat.models import Run, RunEvent

    attempts = Run.objects.filter(id__in=runs, attempt__gt=0).values_list("attempt", flat=True)
    asked = RunEvent.objects.filter(run_id__in=runs, kind="approval_required")
    return sum(number - 1 for number in attempts) - (
        asked.order_by().values("run_id", "attempt").distinct().count()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
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
            kills=asked.kills,
            seed=asked.seed,
            seconds=asked.seconds,
        )
    finally:
        connections.close_all()
        teardown_databases(databases, verbosity=0)
    print(report)  # noqa: T201
    if missed := set(MOMENTS) - set(report.deaths):
        print("Nobody died when", ", when ".join(sorted(missed)))  # noqa: T201
    if report.violations or report.kills < asked.kills:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
