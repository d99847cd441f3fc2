"""A server that is killed in the middle of a stream, and the next start, as processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.chat.wire.parser import parse

pytestmark = pytest.mark.server

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
STORY = "make a note called Groceries with milk and eggs, then find it"


class Process:
    """`manage.py serve` on a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        self.environment = inherited | {"NOTEWIRE_HOME": str(home), "PORT": str(self.port)}
        self.running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.home / "serve.log").open("ab") as log:
            self.running = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.running.poll() is None:
            try:
                if httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200:
                    return
            except httpx.TransportError:
                continue
        raise AssertionError((self.home / "serve.log").read_text())

    def end(self, number: signal.Signals) -> int:
        assert self.running is not None
        self.running.send_signal(number)
        return self.running.wait(30)

    def manage(self, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout.strip()


@pytest.fixture(scope="module")
def process() -> Iterator[Process]:
    home = Path(tempfile.mkdtemp(prefix="notewire-"))
    home.chmod(0o755)
    process = Process(home)
    try:
        process.start()
        yield process
    finally:
        if process.running is not None and process.running.poll() is None:
            process.end(signal.SIGTERM)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def client(process) -> Iterator[httpx.Client]:
    process.manage(
        "createsuperuser", "--noinput", "--username=ada", "--email=ada@example.org",
        DJANGO_SUPERUSER_PASSWORD="correct horse",
    )  # fmt: skip
    secret = process.manage("create_token", "ada", "--name", "test")
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=process.url, headers=headers, timeout=30) as client:
        yield client


def cut_off(process, client, signal_number) -> tuple[str, str]:
    """Ask, read until the answer's second tool works, end the server; run and conversation."""
    with client.stream("POST", "/api/completions/", json={"content": STORY}) as response:
        seen = b""
        for part in response.iter_raw():
            seen += part
            if seen.count(b"event: tool_use") == 2:
                break
        process.end(signal_number)
        return response.headers["X-Run-Id"], response.headers["X-Conversation-Id"]


def ended(client, run_id, *, within: float) -> dict:
    """The run once it is over: its event stream ends with it."""
    client.get(f"/api/runs/{run_id}/events/", timeout=within)
    run = client.get(f"/api/runs/{run_id}/").json()
    assert run["status"] == "finished"
    return dict(run)


def test_killed_server_loses_nothing_and_the_next_start_carries_the_run_on(process, client):
    run_id, conversation_id = cut_off(process, client, signal.SIGKILL)
    process.start()

    messages = client.get(f"/api/conversations/{conversation_id}/messages/").json()["results"]
    assert messages[0]["content"] == STORY
    assert messages[1]["content"].startswith("I make the note")
    run = ended(client, run_id, within=60)
    assert run["stop_reason"] in {"end_turn", "error"}

    events = parse(client.get(f"/api/runs/{run_id}/events/").content)
    assert [event.name for event in events].count("done") == 1
    results = [json.loads(e.data)["tool_call_id"] for e in events if e.name == "tool_result"]
    assert len(results) == len(set(results))
    assert client.get("/api/notes/").json()["count"] == 1
    answer = client.post(
        f"/api/conversations/{conversation_id}/completions/",
        json={"content": "list my notes", "stream": False},
    )
    assert answer.status_code == 200


def test_server_that_is_asked_to_stop_hands_its_run_on(process, client):
    run_id, _conversation = cut_off(process, client, signal.SIGTERM)
    process.start()

    assert ended(client, run_id, within=20)["stop_reason"] == "end_turn"


def test_server_that_stops_leaves_no_database_running(process):
    home = process.home / "postgres"
    assert process.running is not None
    if process.running.poll() is None:
        process.end(signal.SIGTERM)

    assert not (home / "postmaster.pid").exists()
