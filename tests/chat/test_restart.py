"""PostgreSQL restarts in the middle of runs: each goes on or ends clearly, and nothing hangs.

The same on a larger scale: ``tests/chaos/restart_postgres.py``.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.chaos.restart_postgres import outage

pytestmark = pytest.mark.server


def test_every_run_ends_and_every_listener_hears_it_when_postgres_restarts():
    home = Path(tempfile.mkdtemp(prefix="notewire-"))
    home.chmod(0o755)
    try:
        report = outage(home=home, runs=3, seconds=0.5)
    finally:
        shutil.rmtree(home, ignore_errors=True)

    assert report.violations == []
    assert sum(report.reasons.values()) == 3
    assert set(report.reasons) <= {"end_turn", "error"}
