"""``manage.py serve``: everything that Notewire is, in one command.

Prepares database and static files, then runs uvicorn in this process, or a supervisor of several
with ``--workers``. Each process makes its own runtime in the lifespan of ``config.asgi``.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections
from django.utils.module_loading import import_string
from uvicorn.supervisors import Multiprocess

from config import env, preparation

FIRST_ACCOUNT_LINK = "accounts.first_account.link_path"
DRAIN_SECONDS = 8  # streams are ended after 7; the process is gone after 10
#: Where a socket answers that listens on all addresses.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


class Command(BaseCommand):
    help = "Prepare the database and serve Notewire: pages, API, and (unless told not to) runs."
    # At every start what an operator may get wrong; a migration checks the rest.
    requires_system_checks = ("tools", "models")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=env.HOST, help="address to listen on (HOST)")
        parser.add_argument("--port", default=env.PORT, type=int, help="port (PORT)")
        parser.add_argument("--workers", default=1, type=_count, help="number of processes (1)")
        parser.add_argument(
            "--no-worker", action="store_true", help="carry out no runs here: others do"
        )

    def handle(self, **options: Any) -> None:
        # uvicorn raises SIGTERM again at its end; only an orderly exit runs exit handlers.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        settings.NOTEWIRE_WORKER = settings.NOTEWIRE_WORKER and not options["no_worker"]
        env.hand_on("NOTEWIRE_WORKER", "on" if settings.NOTEWIRE_WORKER else "off")
        # What cannot be listened on is refused before all that takes time.
        with _bound(options["host"], options["port"]) as listener:
            self._prepare()
            said = self._welcome(options["host"], listener.getsockname()[1])
            connections.close_all()
            with _said_in_one_line(options["host"], options["port"]):
                listener.listen(2048)
            announcing = threading.Thread(
                target=self._announce, args=(listener.getsockname(), said), daemon=True
            )
            announcing.start()
            _run(listener, processes=options["workers"])

    def _prepare(self) -> None:
        try:
            preparation.database_reach()
            if preparation.schema_migrate():
                self.stdout.write("The database is up to date.")
        except (OperationalError, psycopg.OperationalError) as error:
            said = str(error).strip().splitlines()[0] if str(error).strip() else "no answer"
            raise CommandError(
                f"The database cannot be reached: {said}\nIs DATABASE_URL right?"
            ) from error
        if preparation.static_collect():
            self.stdout.write("The static files are in place.")

    def _welcome(self, host: str, port: int) -> str:
        near = EVERYWHERE.get(host, host)
        local = f"http://[{near}]:{port}" if ":" in near else f"http://{near}:{port}"
        address = settings.NOTEWIRE_URL or local
        lines = [self.style.SUCCESS(f"\nNotewire: {address}")]
        if address != local:
            lines.append(f"Listening on {local}")
        if host in EVERYWHERE and not settings.NOTEWIRE_URL:
            lines.append("Set NOTEWIRE_URL for people on other machines to get in.")
        path = import_string(FIRST_ACCOUNT_LINK)()
        if path is not None:
            lines.append(f"Create the first account: {address}{path}")
        return "\n".join([*lines, "Stop with Ctrl-C.\n"])

    def _announce(self, listening: Any, said: str) -> None:
        """Say where Notewire is once it is there."""
        while not _is_ready(listening):
            time.sleep(0.1)
        self.stdout.write(said)
        self.stdout.flush()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("a whole number from 1")
    return int(text)


def _is_ready(listening: Any) -> bool:
    """Whether a process behind that address can do its work, as a prober would ask."""
    host, port = EVERYWHERE.get(listening[0], listening[0]), listening[1]
    try:
        with socket.create_connection((host, port), timeout=10) as asking:
            asking.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
            return asking.recv(64).split(b" ")[1:2] == [b"200"]
    except OSError:
        return False


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with _said_in_one_line(host, port):
        listener.bind((host, port))
    listener.set_inheritable(True)
    return listener


@contextmanager
def _said_in_one_line(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"Cannot listen on {host} port {port} ({error}). Choose another with PORT or HOST."
        ) from error


def _run(listener: socket.socket, *, processes: int) -> None:
    config = uvicorn.Config(
        "config.asgi:application",
        workers=processes,
        loop="auto",
        http="auto",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=logging.getLogger("uvicorn.access").isEnabledFor(logging.INFO),
        server_header=False,
        proxy_headers=settings.NOTEWIRE_URL is not None,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    try:
        if processes > 1:
            Multiprocess(config, sockets=[listener]).run()
        else:
            uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        sys.exit(0)
