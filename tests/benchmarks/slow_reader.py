"""How much memory a reader costs that does not read, while 50 MB of events pass by.

    .venv/bin/python -m tests.benchmarks.slow_reader [--megabytes 50]

Serves on a home of its own, lets one client open a run's stream and read nothing, while the run's
events are stored and told of by another process as fast as they can be. Prints how much the
server's memory grew, by the first of these megabytes and by all; then the client reads on, and
must have every event, in order. Fails where it has not, or where memory grew with the events.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from tests.process import ROOT, Process

MIB = 1024 * 1024
EVENT_BYTES = 16 * 1024
READ_SECONDS = 300
#: A page and a queue of 1 MiB each, a few times over: as text, as events, as what is sent.
MOST_GROWTH_MIB = 24

#: Run in a process of its own, as its database is the server's.
WRITE = """
import sys, uuid, django
django.setup()
from chat import events
from chat.events import LoggedEvent
from chat.models import Run
from chat.runs import event_log
run = Run.objects.get(id=sys.argv[1])
first, count, size = map(int, sys.argv[2:])
message = uuid.UUID(int=1)
for start in range(first, first + count, 16):
    logged = [
        LoggedEvent(run.id, run.attempt, seq, events.TextDelta(message_id=message, text="x" * size))
        for seq in range(start, min(start + 16, first + count))
    ]
    event_log.events_store(logged=logged, origin="")
"""
START = """
import sys, django
django.setup()
from accounts.models import User
from chat.models import Run
from chat.runs import lifecycle
run = lifecycle.run_start(owner=User.objects.get(username="ada"), content="hello")
print(lifecycle.run_begin(run_id=run.id).run_id)
"""
END = """
import sys, django
django.setup()
from chat.runs import lifecycle
lifecycle.run_close(run_id=sys.argv[1], reason="stopped")
"""


def memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def ask(process: Process, secret: str, run_id: str) -> socket.socket:
    """Open the run's stream, as a client with a small buffer of its own that reads nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    client.connect(("127.0.0.1", process.port))
    request = (
        f"GET /api/runs/{run_id}/events/ HTTP/1.1\r\nHost: 127.0.0.1:{process.port}\r\n"
        f"Authorization: Bearer {secret}\r\n\r\n"
    )
    client.sendall(request.encode())
    assert client.recv(12) == b"HTTP/1.1 200"
    return client


def python(process: Process, code: str, *arguments: object) -> str:
    environment = process.environment | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def ids_read(client: socket.socket) -> list[int]:
    """The seqs of all events, in the order in which they come, up to ``done``."""
    client.settimeout(READ_SECONDS)
    seqs, rest = [], b""
    while b"event: done" not in rest:
        read = client.recv(256 * 1024)
        assert read, "the stream broke off"
        lines = (rest + read).split(b"\n")
        rest = lines.pop()
        seqs += [int(line.rpartition(b"-")[2]) for line in lines if line.startswith(b"id: ")]
        if b"event: done" in lines:
            break
    return seqs


def measure(process: Process, secret: str, megabytes: int) -> bool:
    assert process.running is not None
    pid = process.running.pid
    run_id = python(process, START)
    client = ask(process, secret, run_id)
    httpx.get(f"{process.url}/healthz")
    each = MIB // EVENT_BYTES
    before = memory_mib(pid)
    python(process, WRITE, run_id, 1, 5 * each, EVENT_BYTES)
    time.sleep(2)
    early = memory_mib(pid)
    python(process, WRITE, run_id, 5 * each + 1, (megabytes - 5) * each, EVENT_BYTES)
    time.sleep(2)
    late = memory_mib(pid)
    python(process, END, run_id)
    seqs = ids_read(client)
    read = memory_mib(pid)
    events = megabytes * each
    whole = seqs[:events] == list(range(1, events + 1))
    print(f"before {before:.1f} MiB; after 5 MB {early - before:+.1f} MiB")
    print(f"after {megabytes} MB {late - before:+.1f} MiB; when all was read {read - before:+.1f}")
    print(f"{len(seqs)} of {events + 1} events came, in order: {whole}")
    return whole and late - before < MOST_GROWTH_MIB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=50)
    asked = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="notewire-"))
    home.chmod(0o755)
    process = Process(home)
    process.environment["NOTEWIRE_WORKER"] = "off"
    try:
        process.start()
        is_bounded = measure(process, process.make_token(), asked.megabytes)
    finally:
        if process.running is not None and process.running.poll() is None:
            process.end(signal.SIGTERM)
        shutil.rmtree(home, ignore_errors=True)
    if not is_bounded:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
