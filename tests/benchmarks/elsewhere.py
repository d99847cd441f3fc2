"""How much later a listener hears an event from a process that does not carry the run.

    .venv/bin/python -m tests.benchmarks.elsewhere --runs 20

Serves twice on one embedded database: one process carries runs, the other one hears of them by
notifications. Each run is followed at both; prints the delay of the first text and of all events.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from tests.process import Process

Arrivals = dict[str, float]


@contextmanager
def served(home: Path, **environment: str) -> Iterator[Process]:
    process = Process(home)
    process.environment |= environment
    process.start()
    try:
        yield process
    finally:
        process.end(signal.SIGTERM)


def arrivals(response: httpx.Response, names: dict[str, str]) -> Arrivals:
    """When each event came, by its id."""
    came: Arrivals = {}
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("id: "):
            event_id = line.removeprefix("id: ")
            came.setdefault(event_id, time.perf_counter())
            names.setdefault(event_id, name)
    return came


def follow(client: httpx.Client, run_id: str, into: list[Arrivals], names: dict[str, str]) -> None:
    with client.stream("GET", f"/api/runs/{run_id}/events/") as response:
        into.append(arrivals(response, names))


def delays(here: httpx.Client, elsewhere: httpx.Client) -> tuple[float, list[float]]:
    """Of one run in milliseconds: of its first text, and of all events that came live."""
    names: dict[str, str] = {}
    heard: list[Arrivals] = []
    with here.stream("POST", "/api/completions/", json={"content": "what can you do"}) as response:
        run_id = response.headers["x-run-id"]
        listening = threading.Thread(target=follow, args=(elsewhere, run_id, heard, names))
        listening.start()
        own = arrivals(response, {})
        listening.join()
    late = {key: (heard[0][key] - own[key]) * 1000 for key in own}
    first = next(key for key in own if names[key] == "text_delta")
    return late[first], list(late.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    asked = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="notewire-"))
    home.chmod(0o755)
    try:
        with ExitStack() as stack:
            carrying = stack.enter_context(served(home))
            other = stack.enter_context(served(home, NOTEWIRE_WORKER="off"))
            headers = {"Authorization": f"Bearer {carrying.make_token()}"}
            here, elsewhere = (
                stack.enter_context(httpx.Client(base_url=each.url, headers=headers, timeout=30))
                for each in (carrying, other)
            )
            measured = [delays(here, elsewhere) for _ in range(asked.runs)]
    finally:
        shutil.rmtree(home, ignore_errors=True)
    firsts = [first for first, _ in measured]
    every = sorted(delay for _, delays_of_run in measured for delay in delays_of_run)
    for name, values in (("first text", sorted(firsts)), ("all events", every)):
        p95 = values[int(len(values) * 0.95)]
        print(f"{name}: median {statistics.median(values):.1f} ms, p95 {p95:.1f} ms")


if __name__ == "__main__":
    main()
