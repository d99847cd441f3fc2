"""How soon a click takes effect: from stop to quiet, and from approve to the next event.

    .venv/bin/python -m tests.benchmarks.latency [--times 50]

Serves on a home of its own with a scripted vendor on loopback. Each is done 50 times, one after the
other: once with the runs in the process that serves, once with a `worker` beside it. Prints median
and 95th percentile in milliseconds, counted from when the request is sent:

- stop: until `done` is read from the run's stream, and until the vendor sees its socket closed;
- approve: until the first event after `approval_resolved` is read from the run's stream, which is
  the `run_started` of the worker that goes on.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.benchmarks.first_byte import milliseconds, report
from tests.process import ROOT, Process
from tests.upstream import Upstream

TIMES = 50
WAIT_SECONDS = 30
SCOPES = "read,write,chat,approve"


class Listener(threading.Thread):
    """Starts a run and reads its stream; tells when each event was read."""

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(daemon=True)
        self.client = client
        self.run_id: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.events: queue.SimpleQueue[tuple[str, float]] = queue.SimpleQueue()

    def run(self) -> None:
        body = {"content": "Go on."}
        with self.client.stream("POST", "/api/completions/", json=body) as response:
            self.run_id.put(response.headers["X-Run-Id"])
            for line in response.iter_lines():
                if line.startswith("event: "):
                    self.events.put((line.removeprefix("event: "), time.perf_counter()))
                elif '"content":"' in line:
                    self.events.put(("text", time.perf_counter()))

    def next(self) -> tuple[str, float]:
        return self.events.get(timeout=WAIT_SECONDS)

    def until(self, name: str) -> float:
        while True:
            told, at = self.next()
            if told == name:
                return at


def stop_once(client: httpx.Client, upstream: Upstream) -> tuple[float, float]:
    listener = Listener(client)
    listener.start()
    run_id = listener.run_id.get(timeout=WAIT_SECONDS)
    listener.until("text")
    began = time.perf_counter()
    client.post(f"/api/runs/{run_id}/stop/").raise_for_status()
    done = listener.until("done")
    gone = upstream.gone.get(timeout=WAIT_SECONDS)
    listener.join()
    return (done - began) * 1000, (gone - began) * 1000


def approve_once(client: httpx.Client) -> float:
    listener = Listener(client)
    listener.start()
    listener.until("approval_required")
    [approval] = client.get("/api/approvals/").json()["results"]
    began = time.perf_counter()
    word = {"decision": "approve"}
    client.post(f"/api/approvals/{approval['id']}/", json=word).raise_for_status()
    listener.until("approval_resolved")
    name, came = listener.next()
    assert name == "run_started", name
    listener.until("done")
    listener.join()
    return (came - began) * 1000


def healthy_once(client: httpx.Client) -> float:
    began = time.perf_counter()
    client.get("/healthz")
    return milliseconds(began)


@contextmanager
def served(upstream: Upstream, *, apart: bool) -> Iterator[httpx.Client]:
    """A client of a server that carries runs, or of one that has a worker ``apart`` for it."""
    home = Path(tempfile.mkdtemp(prefix="notewire-"))
    home.chmod(0o755)
    process = Process(home)
    process.environment |= {
        "DATABASE_URL": "",
        "OPENAI_BASE_URL": upstream.url,
        "NOTEWIRE_DEFAULT_MODEL": "openai/scripted",
        "NOTEWIRE_TOOL_POLICY": "note_create=ask",
    }
    worker: subprocess.Popen[bytes] | None = None
    try:
        working = dict(process.environment)
        process.environment["NOTEWIRE_WORKER"] = "off" if apart else "on"
        process.start()
        if apart:
            worker = subprocess.Popen(
                [sys.executable, "manage.py", "worker"],
                cwd=ROOT,
                env=working,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        process.make_token()
        secret = process.manage("create_token", "ada", "--name", "clicks", "--scopes", SCOPES)
        headers = {"Authorization": f"Bearer {secret}"}
        with httpx.Client(base_url=process.url, headers=headers, timeout=WAIT_SECONDS) as client:
            yield client
    finally:
        if worker is not None:
            worker.send_signal(signal.SIGTERM)
            worker.wait(WAIT_SECONDS)
        if process.running is not None and process.running.poll() is None:
            process.end(signal.SIGTERM)
        shutil.rmtree(home, ignore_errors=True)


def measure(times: int, *, apart: bool) -> None:
    where = "worker apart" if apart else "one process"
    with Upstream().served() as upstream, served(upstream, apart=apart) as client:
        stop_once(client, upstream)  # whatever is done for the first time
        stops = [stop_once(client, upstream) for _ in range(times)]
        healths = [healthy_once(client) for _ in range(times)]
    asking = Upstream(("note_create", {"title": "Milk", "content": "and eggs"}))
    with asking.served() as upstream, served(upstream, apart=apart) as client:
        approve_once(client)
        approvals = [approve_once(client) for _ in range(times)]
    report(f"{where}: GET /healthz", healths)
    report(f"{where}: stop to done", [done for done, _ in stops])
    report(f"{where}: stop to upstream closed", [gone for _, gone in stops])
    report(f"{where}: approve to next event", approvals)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=TIMES)
    asked = parser.parse_args()
    for apart in (False, True):
        measure(asked.times, apart=apart)
    print("load average", *(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
