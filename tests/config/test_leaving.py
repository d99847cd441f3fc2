"""SIGTERM ends the server in time, whatever its jobs do: a real one, and a database that hangs."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.process import Process

pytestmark = [pytest.mark.server, pytest.mark.thorough]

#: Twice what is promised, as the machine may be busy.
SECONDS = 20

#: Filling goes on whatever it is told: nobody can cancel it.
DEAF_FILLING = """
CREATE OR REPLACE FUNCTION notes_search_go_on(id uuid, number integer) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  LOOP
    BEGIN
      PERFORM pg_sleep(60);
    EXCEPTION WHEN query_canceled THEN
      NULL;
    END;
  END LOOP;
END $$
"""
#: Whatever a run stores of its answer waits.
SLOW_RUNS = """
CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_sleep(300);
  RETURN NEW;
END $$;
CREATE TRIGGER sleeping BEFORE UPDATE ON chat_run FOR EACH ROW
WHEN (NEW.attempt > OLD.attempt) EXECUTE FUNCTION sleep()
"""
ASLEEP = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


@pytest.fixture
def process() -> Iterator[Process]:
    home = Path(tempfile.mkdtemp(prefix="notewire-"))
    home.chmod(0o755)
    process = Process(home)
    try:
        yield process
    finally:
        if process.running is not None and process.running.poll() is None:
            process.running.kill()
        process.manage("check")  # who uses the database last stops it
        shutil.rmtree(home, ignore_errors=True)


def execute(process: Process, sql: str) -> str:
    return process.manage(
        "shell", "-v0", "-c",
        "from django.db import connection as c; u = c.cursor(); "
        f"u.execute({sql!r}); print(len(u.fetchall()) if u.description else 0)",
    )  # fmt: skip


def wait_until_asleep(process: Process) -> None:
    deadline = time.monotonic() + 30
    while execute(process, ASLEEP) == "0":
        assert time.monotonic() < deadline, (process.home / "serve.log").read_text()


def stopped(process: Process) -> str:
    """Stop the server; its log."""
    began = time.monotonic()
    assert process.end(signal.SIGTERM) == 0
    assert time.monotonic() - began < SECONDS
    return (process.home / "serve.log").read_text()


def test_server_is_gone_though_a_statement_cannot_be_cancelled(process: Process) -> None:
    process.start()
    secret = process.make_token()
    execute(process, DEAF_FILLING)
    httpx.post(
        f"{process.url}/api/notes/",
        json={"title": "long", "content": "words " * 60_000},
        headers={"Authorization": f"Bearer {secret}"},
        timeout=30,
    ).raise_for_status()
    wait_until_asleep(process)
    assert "without waiting any longer" in stopped(process)


def test_server_hands_a_run_back_whose_statement_hangs(process: Process) -> None:
    process.start()
    secret = process.make_token()
    execute(process, SLOW_RUNS)
    with httpx.stream(
        "POST",
        f"{process.url}/api/completions/",
        json={"content": "what time is it?"},
        headers={"Authorization": f"Bearer {secret}"},
        timeout=30,
    ) as answer:
        answer.raise_for_status()
        wait_until_asleep(process)
    assert "without waiting any longer" not in stopped(process)
    assert execute(process, "SELECT 1 FROM procrastinate_jobs WHERE status = 'doing'") == "0"
    assert execute(process, "SELECT 1 FROM procrastinate_jobs WHERE status = 'todo'") == "1"
