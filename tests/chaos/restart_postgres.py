"""PostgreSQL goes away for some seconds while runs are carried; every run must end all the same.

    .venv/bin/python -m tests.chaos.restart_postgres --runs 50 --seconds 10

Serves on a home of its own with the embedded server, starts runs of the scripted demo (each makes a
note and finds it), follows each as a client that reconnects, and stops PostgreSQL in the middle.
Prints what became of the runs and of their listeners, and fails on any violation.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from config import embedded_postgres
from tests.chat.wire.parser import Event, parse
from tests.process import Process

END_SECONDS = 90
PAUSE_SECONDS = 0.2


@dataclass
class Report:
    reasons: Counter[str] = field(default_factory=Counter)
    attempts: Counter[int] = field(default_factory=Counter)
    streams_broken: int = 0
    ended_after: list[float] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


class Follower(threading.Thread):
    """A client that asks, reads its stream, and goes on elsewhere where that breaks off."""

    def __init__(self, client: httpx.Client, number: int) -> None:
        super().__init__(name=f"follower {number}", daemon=True)
        self.client = client
        self.content = f"make a note called Item{number} with milk, then find it"
        self.begun = threading.Event()
        self.run_id = self.conversation_id = ""
        self.events: list[Event] = []
        self.broken = 0
        self.ended = 0.0

    def run(self) -> None:
        body = {"content": self.content}
        with self.client.stream("POST", "/api/completions/", json=body) as response:
            self.run_id = response.headers["x-run-id"]
            self.conversation_id = response.headers["x-conversation-id"]
            self._read(response)
        deadline = time.monotonic() + END_SECONDS
        while not self.is_over and time.monotonic() < deadline:
            self.broken += 1
            time.sleep(PAUSE_SECONDS)
            self._resume()
        self.ended = time.monotonic()

    @property
    def is_over(self) -> bool:
        return any(event.name == "done" for event in self.events)

    def _resume(self) -> None:
        told = [event.id for event in self.events if event.id]
        headers = {"Last-Event-ID": told[-1]} if told else {}
        path = f"/api/runs/{self.run_id}/events/"
        try:
            with self.client.stream("GET", path, headers=headers) as response:
                if response.status_code == 200:
                    self._read(response)
        except httpx.TransportError:
            return

    def _read(self, response: httpx.Response) -> None:
        """What a client has when the stream ends: whole events, up to where it broke off."""
        seen = b""
        try:
            for part in response.iter_raw():
                seen += part
                self.begun.set()
        except httpx.TransportError:
            pass
        told = parse(seen[: seen.rfind(b"\n\n") + 2])
        # The server's word that the stream broke off is about the stream, and has no id of its own.
        self.events += [e for e in told if e.name != "error" or '"internal"' not in e.data]


def outage(*, home: Path, runs: int, seconds: float) -> Report:
    """Take PostgreSQL away for ``seconds`` while ``runs`` runs are carried."""
    report = Report()
    with serving(home) as client:
        followers = [Follower(client, number) for number in range(runs)]
        for follower in followers:
            follower.start()
        for follower in followers:
            follower.begun.wait(END_SECONDS)
        stopped(home, seconds)
        back = time.monotonic()
        for follower in followers:
            follower.join(END_SECONDS + 30)
            report.ended_after.append(round(follower.ended - back, 1))
            _judge(report, client, follower)
    return report


@contextmanager
def serving(home: Path) -> Iterator[httpx.Client]:
    process = Process(home)
    try:
        process.start()
        headers = {"Authorization": f"Bearer {process.make_token()}"}
        limits = httpx.Limits(max_connections=None)
        with httpx.Client(
            base_url=process.url, headers=headers, timeout=END_SECONDS, limits=limits
        ) as client:
            yield client
    finally:
        if process.running is not None and process.running.poll() is None:
            process.end(signal.SIGTERM)


def stopped(home: Path, seconds: float) -> None:
    """Stop the embedded server of that home, and let it be started again after so long."""
    account = embedded_postgres._Account.current()
    data = (home / "postgres").resolve()
    command = ["stop", "-w", "-m", "fast", "-D", str(data)]
    # Under the lock, or whoever uses the server would start it again at once.
    with embedded_postgres._lock(data):
        embedded_postgres._run(account, "pg_ctl", *command)
        time.sleep(seconds)
        sockets = embedded_postgres._socket_folder(data, account)
        embedded_postgres._start(data, account, sockets, durable=True)


def _judge(report: Report, client: httpx.Client, follower: Follower) -> None:
    run = client.get(f"/api/runs/{follower.run_id}/").json()
    name = follower.run_id
    report.reasons[run["stop_reason"] or run["status"]] += 1
    report.streams_broken += follower.broken > 0
    if run["status"] != "finished" or not follower.is_over:
        report.violations.append(f"{name}: {run['status']}, done seen: {follower.is_over}")
        return
    log = parse(client.get(f"/api/runs/{name}/events/").content)
    report.attempts[int(log[-1].id.partition("-")[0])] += 1
    if [event.name for event in log].count("done") != 1:
        report.violations.append(f"{name}: not one done")
    messages = client.get(f"/api/conversations/{follower.conversation_id}/messages/").json()
    calls = [call for message in messages["results"] for call in message.get("tool_calls", ())]
    if open_calls := [c for c in calls if c["status"] in {"pending", "running"}]:
        report.violations.append(f"{name}: open calls {open_calls}")
    answer = client.post(
        f"/api/conversations/{follower.conversation_id}/completions/",
        json={"content": "what time is it", "stream": False},
    )
    if answer.status_code != 200:
        report.violations.append(f"{name}: the next message got {answer.text[:200]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    asked = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="notewire-"))
    home.chmod(0o755)
    try:
        report = outage(home=home, runs=asked.runs, seconds=asked.seconds)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(report)  # noqa: T201
    if report.violations:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
