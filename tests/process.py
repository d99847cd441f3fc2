"""`manage.py serve` as a process of its own, for what a server in a thread cannot show."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 180
PASSWORD = "correct horse"


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
                time.sleep(0.02)
        raise AssertionError((self.home / "serve.log").read_text())

    def end(self, number: signal.Signals) -> int:
        assert self.running is not None
        self.running.send_signal(number)
        return self.running.wait(60)

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

    def make_token(self) -> str:
        """A person and the secret of a token of theirs."""
        self.manage(
            "createsuperuser", "--noinput", "--username=ada", "--email=ada@example.org",
            DJANGO_SUPERUSER_PASSWORD=PASSWORD,
        )  # fmt: skip
        return self.manage("create_token", "ada", "--name", "test")
