"""``manage.py runs``: which runs go on, wait or have stalled. Nothing that anybody wrote."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from chat.runs.operating import RunState, runs_unfinished

HEADER = ("STATE", "RUN", "OWNER", "STATUS", "ATTEMPT", "AGE", "HEARTBEAT")


class Command(BaseCommand):
    help = "Show the runs that are not over: active, waiting or stalled."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--stalled", action="store_true", help="only those that nobody carries")

    def handle(self, *, stalled: bool, **options: Any) -> None:
        runs = [run for run in runs_unfinished() if not stalled or run.state == "stalled"]
        rows = [HEADER, *map(_row, runs)]
        widths = [max(len(row[n]) for row in rows) for n in range(len(HEADER))]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())
        states = [run.state for run in runs]
        counts = (f"{states.count(state)} {state}" for state in ("active", "waiting", "stalled"))
        self.stdout.write(", ".join(counts))


def _row(run: RunState) -> tuple[str, ...]:
    return (
        run.state,
        str(run.run_id),
        run.owner,
        run.status,
        str(run.attempt),
        _ago(run.created),
        _ago(run.heartbeat) if run.heartbeat else "-",
    )


def _ago(moment: datetime) -> str:
    """In whole seconds: ``0:02:13``."""
    return str(timedelta(seconds=max(0, int((timezone.now() - moment).total_seconds()))))
