"""Fixtures for all: people, clients, and the two ways to run asynchronous code on the database.

Pure tests need none of them. ``units`` runs every unit of work on the test's own connection and
rolls all of it back. ``server`` is the real thing: uvicorn in a thread, committed rows.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address

import hypothesis
import pytest
import uvicorn
from asgiref.sync import SyncToAsync
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection, connections
from django.test import Client

from tools import threads

PROCRASTINATE_TABLES = (
    "procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers, procrastinate_workers"
)

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile(
    "notewire", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile(
    "quick", hypothesis.settings.get_profile("notewire"), max_examples=20
)
hypothesis.settings.load_profile("notewire")


def pytest_collection_modifyitems(items) -> None:
    """Whatever uses the ``server`` fixture carries the marker ``server``."""
    for item in items:
        if "server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.server)


@pytest.fixture(scope="session", autouse=True)
def _no_vendors() -> Iterator[None]:
    """Whatever the environment says, no provider is configured and only loopback is reached."""
    connect = socket.socket.connect

    def connect_nearby(self, address):
        if self.family != socket.AF_UNIX and not ip_address(address[0]).is_loopback:
            raise RuntimeError(f"A test may not reach {address}.")
        return connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        for name in dir(settings):
            if name.endswith(("_API_KEY", "_BASE_URL")):
                patch.setattr(settings, name, "")
        patch.setattr(settings, "NOTEWIRE_DEFAULT_MODEL", "")
        patch.setattr(settings, "NOTEWIRE_DEMO", True)
        patch.setattr(socket.socket, "connect", connect_nearby)
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker) -> Iterator[None]:
    """At the end, end what sessions are left: those of killed processes outlive them a moment."""
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def user(db):
    return get_user_model().objects.create_user("ada", password="correct horse")


@pytest.fixture
def other_user(db):
    return get_user_model().objects.create_user("mallory", password="battery staple")


@pytest.fixture
def client_of() -> Callable[..., Client]:
    """Make a client with a session: ``client_of(user)``; of nobody without an argument."""

    def make(person=None, **options) -> Client:
        client = Client(**options)
        if person is not None:
            client.force_login(person)
        return client

    return make


@pytest.fixture
def units(db, monkeypatch) -> Iterator[None]:
    """Units of work and synchronous tools run in one thread, on the connection of the test."""
    connection.ensure_connection()
    connection.inc_thread_sharing()
    borrowed = connections["default"]
    executor = ThreadPoolExecutor(1, "units", connections.__setitem__, ("default", borrowed))
    monkeypatch.setattr(threads, "_units", executor)
    monkeypatch.setattr(threads, "_chores", executor)
    monkeypatch.setattr(threads, "_tools", executor)
    monkeypatch.setattr(threads, "close_old_connections", lambda: None)
    yield
    executor.shutdown()
    connection.dec_thread_sharing()


@dataclass
class Server:
    """A server in a thread: its address, and how to stop it before the test ends."""

    url: str
    stop: Callable[[], None]


@pytest.fixture
def server(transactional_db) -> Iterator[Server]:
    """The real server on a free loopback port, with lifespan and committed rows."""
    running = _Running()
    running.start()
    try:
        yield Server(running.url, running.stop)
    finally:
        running.stop()
        _finish_units()
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {PROCRASTINATE_TABLES} CASCADE")


class _Running(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="server", daemon=True)
        from config.asgi import Application

        self.application = Application()
        config = uvicorn.Config(
            self.application,
            port=0,
            lifespan="on",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=10,
        )
        self.server = uvicorn.Server(config)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.ready = threading.Event()
        self.url = ""

    def start(self) -> None:
        super().start()
        assert self.ready.wait(20), "the server did not start"
        assert self.url, "the server failed to start"

    def run(self) -> None:
        try:
            self.server.config.load()
            factory = self.server.config.get_loop_factory()
            with asyncio.Runner(loop_factory=factory) as runner:
                runner.run(self._serve())
        finally:
            self.ready.set()
            connections.close_all()

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        serving = asyncio.create_task(self.server.serve())
        while not self.server.started and not serving.done():
            await asyncio.sleep(0.005)
        if self.server.started:
            host, port = self.server.servers[0].sockets[0].getsockname()[:2]
            self.url = f"http://{host}:{port}"
        self.ready.set()
        await serving

    def stop(self) -> None:
        if not self.is_alive():
            return
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.application.drain)
        self.server.should_exit = True
        self.join(20)
        assert not self.is_alive(), "the server did not stop"


def _finish_units() -> None:
    """Wait until no thread of the executors works, and let each give its connection back."""
    for executor in (threads._units, threads._chores, threads._tools):
        executor.shutdown(wait=True)
    # Periodic jobs are deferred in asgiref's thread.
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()
    threads._units = ThreadPoolExecutor(8, thread_name_prefix="unit")
    threads._chores = ThreadPoolExecutor(2, thread_name_prefix="chore")
    threads._tools = ThreadPoolExecutor(16, thread_name_prefix="tool")
