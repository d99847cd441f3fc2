"""``manage.py serve``: everything that Notewire is, in one command.

Prepares database and static files, then runs uvicorn in this process, or a supervisor of several
with ``--workers``. Each process makes its own runtime in the lifespan of ``config.asgi``.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
from argparse import ArgumentParser, ArgumentTypeError
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
DRAIN_SECONDS = 10


class Command(BaseCommand):
    help = "Prepare the database and serve Notewire: pages, API, and (unless told not to) runs."
    # At every start what an operator may get wrong; a migration checks the rest.
    requires_system_checks = ("tools",)

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
        self._prepare()
        settings.NOTEWIRE_WORKER = settings.NOTEWIRE_WORKER and not options["no_worker"]
        env.hand_on("NOTEWIRE_WORKER", "on" if settings.NOTEWIRE_WORKER else "off")
        with _listen(options["host"], options["port"]) as listener:
            self._announce(options["host"], listener.getsockname()[1])
            connections.close_all()
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

    def _announce(self, host: str, port: int) -> None:
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}  # noqa: S104
        local = f"http://{everywhere.get(host, host)}:{port}"
        address = settings.NOTEWIRE_URL or local
        self.stdout.write(self.style.SUCCESS(f"\nNotewire: {address}"))
        if address != local:
            self.stdout.write(f"Listening on {local}")
        if host in everywhere and not settings.NOTEWIRE_URL:
            self.stdout.write("Set NOTEWIRE_URL for people on other machines to get in.")
        path = import_string(FIRST_ACCOUNT_LINK)()
        if path is not None:
            self.stdout.write(f"Create the first account: {address}{path}")
        self.stdout.write("Stop with Ctrl-C.\n")
        self.stdout.flush()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("a whole number from 1")
    return int(text)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"Cannot listen on {host} port {port} ({error}). Choose another with PORT or HOST."
        ) from error
    listener.listen(2048)
    listener.set_inheritable(True)
    return listener


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
