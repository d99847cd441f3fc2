"""A server that is killed in the middle of a stream, and the next start, as processes."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.chat.wire.parser import parse
from tests.process import Process

pytestmark = pytest.mark.server

STORY = "make a note called {title} with milk and eggs, then find it"


@pytest.fixture(scope="module")
def home_process() -> Iterator[Process]:
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
def secret(home_process):
    return home_process.make_token()


@pytest.fixture
def process(home_process, secret):
    """A server that runs, whatever the test before did to it."""
    if home_process.running is None or home_process.running.poll() is not None:
        home_process.start()
    return home_process


@pytest.fixture
def client(process, secret) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=process.url, headers=headers, timeout=30) as client:
        yield client


def cut_off(process, client, signal_number, title) -> tuple[str, str]:
    """Ask, read until the answer's second tool works, end the server; run and conversation."""
    body = {"content": STORY.format(title=title)}
    with client.stream("POST", "/api/completions/", json=body) as response:
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
    run_id, conversation_id = cut_off(process, client, signal.SIGKILL, "Killed")
    process.start()

    messages = client.get(f"/api/conversations/{conversation_id}/messages/").json()["results"]
    assert messages[0]["content"] == STORY.format(title="Killed")
    assert messages[1]["content"].startswith("I make the note")
    run = ended(client, run_id, within=60)
    assert run["stop_reason"] in {"end_turn", "error"}

    events = parse(client.get(f"/api/runs/{run_id}/events/").content)
    assert [event.name for event in events].count("done") == 1
    results = [json.loads(e.data)["tool_call_id"] for e in events if e.name == "tool_result"]
    assert len(results) == len(set(results))
    notes = client.get("/api/notes/").json()["results"]
    assert [note["title"] for note in notes].count("Killed") == 1
    answer = client.post(
        f"/api/conversations/{conversation_id}/completions/",
        json={"content": "list my notes", "stream": False},
    )
    assert answer.status_code == 200


def test_server_that_is_asked_to_stop_hands_its_run_on(process, client):
    run_id, _conversation = cut_off(process, client, signal.SIGTERM, "Stopped")
    process.start()

    assert ended(client, run_id, within=20)["stop_reason"] == "end_turn"


def test_server_that_stops_leaves_no_database_running(process):
    home = process.home / "postgres"
    process.end(signal.SIGTERM)

    assert not (home / "postmaster.pid").exists()
