"""Runs under whatever may happen to them, in any order: after every step the invariants hold.

A machine plays all sides, each in a module of ``machine``: people who write, stop, branch and
delete (``people``), decide and say when to be asked (``deciders``), models (``models``), processes
that carry a run and are killed, hand it back or are taken for dead while they go on (``carriers``),
and listeners that come and go (``listeners``). It keeps its own account of what was said
(``account``, ``wall``), and compares (``holding``). The suite plays the same few games each time;
others, say 1,000::

    MACHINE_EXAMPLES=1000 pytest tests/chat/runs/test_machine.py
"""

from __future__ import annotations

import os

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from chat.api import following
from chat.models import ACTIVE_STATUSES, Run
from chat.runs import executor, flusher, lifecycle
from tests.chat.runs.machine.deciders import Deciders
from tests.chat.runs.machine.holding import Holding
from tests.chat.runs.machine.models import Models
from tests.chat.runs.machine.people import People
from tests.chat.runs.machine.play import HISTORY_BYTES
from tests.chat.runs.machine.processes import unit_of_flusher, unit_of_process
from tests.chat.runs.machine.wall import Wall, tools_of

pytestmark = pytest.mark.django_db

#: How many other games are played than the ones of the suite.
EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "0"))
FEW = 12


class Machine(People, Deciders, Models, Holding):
    def teardown(self) -> None:
        """Everything comes to its end, whatever state it was left in."""
        try:
            for attempt in self.living:
                self.go(attempt.kill())
            self.look()
            for run in Run.objects.filter(status__in=ACTIVE_STATUSES):
                lifecycle.run_stop(owner=self.user, run_id=run.id)
            self.pass_time(is_late=True)
            self.holds()
            assert not self.active
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
                cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        finally:
            for attempt in self.attempts:
                self.go(attempt.kill())
            for ear in self.ears:
                self.go(ear.hang_up())
            self.runner.close()
            transaction.set_rollback(True)
            self.savepoint.__exit__(None, None, None)


@pytest.fixture
def walls():
    """The wall of the game that is played is the first of them."""
    found = [Wall()]
    with tools_of(found):
        yield found


@pytest.fixture
def settings_of_machine(settings, monkeypatch):
    settings.NOTEWIRE_HISTORY_BYTES = HISTORY_BYTES
    settings.NOTEWIRE_GATHER_MS = 0
    monkeypatch.setattr(executor, "unit_of_work", unit_of_process)
    monkeypatch.setattr(flusher, "unit_of_work", unit_of_flusher)
    monkeypatch.setattr(following, "SETTLE_SECONDS", -1.0)


@pytest.mark.thorough
def test_runs_keep_their_invariants_whatever_happens(
    user, units, walls, monkeypatch, settings_of_machine
):
    class Played(Machine):
        def __init__(self) -> None:
            super().__init__(user, walls, monkeypatch)

    run_state_machine_as_test(
        Played,
        settings=settings(
            max_examples=EXAMPLES or FEW,
            derandomize=not EXAMPLES,
            database=None,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        ),
    )
