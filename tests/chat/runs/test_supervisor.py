"""What a worker's sweep does besides taking up lost runs."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from asgiref.sync import SyncToAsync
from django.db import connection
from django.utils import timezone

from chat.models import Run
from chat.runs import event_log
from chat.runs import supervisor as supervisor_module
from chat.runs.lifecycle import run_close, run_start
from chat.runs.supervisor import Supervisor
from chat.runs.sweeper import Sweeper
from tools.threads import unit_of_work
from web.models import OwnerEvent

pytestmark = pytest.mark.django_db


async def test_sweep_folds_logs_and_forgets_what_is_old(stage, start):
    run = await start()
    await unit_of_work(run_close, run_id=run.id, reason="stopped")
    await unit_of_work(_age, run)

    await Sweeper().sweep()

    assert await unit_of_work(_left, run) == (True, 1)


@pytest.mark.server
@pytest.mark.django_db(transaction=True)
def test_process_that_serves_folds_logs_as_well(monkeypatch, request, user):
    """Its worker is a worker like any other: nobody has to start one for this."""
    monkeypatch.setattr(supervisor_module, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(event_log, "FOLDED_AFTER", timedelta(0))
    run = run_start(owner=user, content="hello")
    run_close(run_id=run.id, reason="stopped")
    OwnerEvent.objects.update(created=timezone.now() - timedelta(days=8))
    request.getfixturevalue("server")

    deadline = time.monotonic() + 30
    while _left(run) != (True, 1) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert _left(run) == (True, 1)


def _age(run) -> None:
    assert OwnerEvent.objects.count() > 1
    Run.objects.filter(id=run.id).update(finished=timezone.now() - timedelta(minutes=5))
    OwnerEvent.objects.update(created=timezone.now() - timedelta(days=8))


def _left(run) -> tuple[bool, int]:
    return Run.objects.get(id=run.id).log_folded, OwnerEvent.objects.count()


async def test_look_for_lost_jobs_comes_with_the_worker_and_a_heartbeat_after_a_failure(
    monkeypatch,
):
    supervisor = Supervisor(cast("Any", None))
    told: list[Any] = []

    async def look(worker) -> None:
        told.append("look")
        if told.count("look") == 1:
            raise RuntimeError("away")

    async def pause(seconds: float) -> None:
        told.append(seconds)
        supervisor._worker = cast("Any", SimpleNamespace(worker_id=7, stop=lambda: None))
        if len(told) >= 6:
            supervisor.stop()

    monkeypatch.setattr(supervisor, "_take_up_stalled", look)
    monkeypatch.setattr(supervisor, "_pause", pause)
    supervisor._worker = cast("Any", SimpleNamespace(worker_id=None, stop=lambda: None))
    await supervisor._watch()
    notice, heartbeat, sweep = (
        supervisor_module.NOTICE_SECONDS,
        supervisor_module.HEARTBEAT_SECONDS,
        supervisor_module.SWEEP_SECONDS,
    )
    assert told == [notice, "look", heartbeat, "look", sweep, "look", sweep]


async def test_worker_that_failed_leaves_the_others_the_time_of_a_heartbeat(monkeypatch):
    supervisor = Supervisor(cast("Any", None))
    told: list[Any] = []

    async def work() -> None:
        if "failed" not in told:
            told.append("failed")
            raise RuntimeError("away")
        supervisor._worker = cast("Any", SimpleNamespace(worker_id=7, stop=lambda: None))
        await supervisor._stopping.wait()

    async def look(worker) -> None:
        told.append("look")
        supervisor.stop()

    async def pause(seconds: float) -> None:
        told.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(supervisor, "_work", work)
    monkeypatch.setattr(supervisor, "_take_up_stalled", look)
    monkeypatch.setattr(supervisor, "_pause", pause)
    async with asyncio.timeout(20):
        await supervisor.run()
    assert told.index(supervisor_module.HEARTBEAT_SECONDS) < told.index("look")


@pytest.mark.django_db(transaction=True)
async def test_worker_begins_without_the_connection_that_an_outage_may_have_broken():
    def in_thread(work):
        executor = SyncToAsync.single_thread_executor
        return asyncio.get_running_loop().run_in_executor(executor, work)

    await in_thread(lambda: connection.ensure_connection())
    supervisor = Supervisor(cast("Any", None))
    supervisor.stop()
    await supervisor._work()

    assert await in_thread(lambda: connection.connection) is None
