"""Workers that are killed at random moments, as in `tests/chaos/kill_workers.py`, fewer times."""

import pytest
from django.db import connections

from tests.chaos.kill_workers import chaos

pytestmark = [pytest.mark.server, pytest.mark.django_db(transaction=True)]

KILLS = 30


def test_runs_end_soundly_whenever_their_workers_are_killed():
    report = chaos(
        database=connections["default"].settings_dict["NAME"], kills=KILLS, seed=7, seconds=240
    )

    assert report.kills >= KILLS
    assert report.cut_off >= KILLS
    assert report.met["awaiting a decision"] > 0
    assert report.violations == []
    assert set(report.reasons) <= {"end_turn", "max_iterations", "denied"}
