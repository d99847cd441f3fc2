"""500 open streams and 200 runs that go on, on one server process with its pool of connections."""

from __future__ import annotations

import asyncio
import resource
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.process import Process
from tests.upstream import FIRST, Upstream

pytestmark = [pytest.mark.server, pytest.mark.thorough]

RUNS = 200  # each with its completion stream
OF_RUNS, OF_CONVERSATIONS, OF_OWNER = 120, 120, 60
STREAMS = RUNS + OF_RUNS + OF_CONVERSATIONS + OF_OWNER
#: What docs/operations.md promises of a process.
MOST_CONNECTIONS = 18
#: Of 12 for requests and units of work one stays with the thread that defers periodic jobs.
FREE = 11
OPEN_FILES = 4096
SECONDS = 180  # for a state to come about on a machine that has much else to do

SESSIONS = """
    SELECT count(*),
        count(*) FILTER (WHERE state LIKE 'idle in transaction%'),
        count(*) FILTER (WHERE state <> 'idle'),
        count(*) FILTER (WHERE wait_event_type = 'Lock' AND query LIKE '%notes_note%')
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
        AND application_name <> 'watcher'
"""


class Watcher(threading.Thread):
    """Looks at the sessions of the server again and again, from sessions that it does not count."""

    def __init__(self, process: Process) -> None:
        super().__init__(name="watcher", daemon=True)
        self.host = (process.home / "postgres" / "postmaster.pid").read_text().splitlines()[4]
        self.most = 0
        self.looks = 0
        self._over = threading.Event()

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host=self.host, user="postgres", dbname="postgres", application_name="watcher"
        )

    def run(self) -> None:
        with self.connect() as session:
            session.autocommit = True
            while not self._over.wait(0.02):
                all_, *_ = self.sessions(session)
                self.most = max(self.most, all_)
                self.looks += 1

    def sessions(self, session: psycopg.Connection) -> tuple[int, int, int, int]:
        """All; idle in a transaction; at work in any way; waiting for the table of notes."""
        found = session.execute(SESSIONS).fetchone()
        assert found is not None
        return found

    def end(self) -> None:
        self._over.set()
        self.join()

    def wait_until_all_rest(self) -> None:
        """Nobody is in a transaction or a statement, at one moment."""
        deadline = time.monotonic() + SECONDS
        with self.connect() as session:
            session.autocommit = True
            while (found := self.sessions(session)[1:3]) != (0, 0):
                assert time.monotonic() < deadline, found

    @contextmanager
    def notes_locked(self) -> Iterator[psycopg.Connection]:
        """Whoever reads notes waits, with a connection of the server."""
        with self.connect() as locking, self.connect() as looking:
            looking.autocommit = True
            locking.execute("LOCK TABLE notes_note IN ACCESS EXCLUSIVE MODE")
            yield looking
            locking.rollback()


@dataclass
class Stream:
    """An open stream and what came of it so far."""

    response: httpx.Response
    parts: AsyncIterator[bytes] = field(init=False)
    seen: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self.parts = self.response.aiter_raw()

    async def until(self, marker: bytes, count: int = 1) -> None:
        while self.seen.count(marker) < count:
            self.seen += await anext(self.parts)


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def upstream(many_files) -> Iterator[Upstream]:
    with Upstream().served() as upstream:
        yield upstream


@pytest.fixture
def process(upstream) -> Iterator[Process]:
    home = Path(tempfile.mkdtemp(prefix="notewire-"))
    home.chmod(0o755)
    process = Process(home)
    process.environment |= {
        "DATABASE_URL": "",
        "OPENAI_BASE_URL": upstream.url,
        "NOTEWIRE_DEFAULT_MODEL": "openai/held",
    }
    try:
        process.start()
        yield process
    finally:
        if process.running is not None and process.running.poll() is None:
            process.end(signal.SIGTERM)
        shutil.rmtree(home, ignore_errors=True)


async def opened(client, method: str, path: str, **options) -> Stream:
    request = client.build_request(method, path, **options)
    response = await client.send(request, stream=True)
    assert response.status_code == 200, (path, response.status_code)
    return Stream(response)


async def open_runs(client) -> list[Stream]:
    body = {"content": "Tell me"}
    runs = [opened(client, "POST", "/api/completions/", json=body) for _ in range(RUNS)]
    streams = await asyncio.gather(*runs)
    await asyncio.gather(*(stream.until(FIRST.encode()) for stream in streams))
    return streams


async def open_listeners(client, runs: list[Stream]) -> tuple[list[Stream], list[Stream]]:
    """Of runs and conversations; of the owner."""
    heads = [stream.response.headers for stream in runs]
    paths = [f"/api/runs/{head['X-Run-Id']}/events/" for head in heads[:OF_RUNS]]
    paths += [
        f"/api/conversations/{head['X-Conversation-Id']}/events/"
        for head in heads[:OF_CONVERSATIONS]
    ]
    following = await asyncio.gather(*(opened(client, "GET", path) for path in paths))
    await asyncio.gather(*(stream.until(FIRST.encode()) for stream in following))
    owners = await asyncio.gather(*(opened(client, "GET", "/api/events/") for _ in range(OF_OWNER)))
    await asyncio.gather(*(stream.until(b"event: snapshot") for stream in owners))
    return following, owners


async def take_whole_pool(client, watcher: Watcher) -> None:
    """As many requests as there are connections for are at work at once: no stream holds any."""
    async with asyncio.TaskGroup() as tasks:
        with watcher.notes_locked() as looking:
            asked = [tasks.create_task(client.get("/api/notes/")) for _ in range(FREE)]
            while watcher.sessions(looking)[3] < FREE:
                await asyncio.sleep(0.01)
    assert [request.result().status_code for request in asked] == [200] * FREE


async def play(client, watcher: Watcher, upstream: Upstream) -> tuple[int, int]:
    """The most connections while all was opened and open, and until all was over."""
    async with asyncio.timeout(SECONDS):
        runs = await open_runs(client)
        following, owners = await open_listeners(client, runs)
        assert (len(runs) + len(following) + len(owners), upstream.held) == (STREAMS, RUNS)
        await asyncio.to_thread(watcher.wait_until_all_rest)
        await take_whole_pool(client, watcher)
        assert upstream.held == RUNS
        open_ = watcher.most
        upstream.release()
        done = [stream.until(b"event: done\n") for stream in (*runs, *following)]
        finished = [stream.until(b"event: run_finished\n", RUNS) for stream in owners]
        await asyncio.gather(*done, *finished)
        for stream in (*following, *owners):
            await stream.response.aclose()
    return open_, watcher.most


def test_process_keeps_to_its_connections_while_500_streams_and_200_runs_are_open(
    process, upstream
):
    async def meet(secret: str, watcher: Watcher) -> tuple[int, int]:
        headers = {"Authorization": f"Bearer {secret}"}
        client = httpx.AsyncClient(
            base_url=process.url, headers=headers, timeout=SECONDS, limits=httpx.Limits()
        )
        async with client:
            return await play(client, watcher, upstream)

    secret = process.make_token()
    watcher = Watcher(process)
    watcher.start()
    try:
        open_, ever = asyncio.run(meet(secret, watcher))
    finally:
        watcher.end()
    assert watcher.looks > 0
    assert FREE < open_ <= MOST_CONNECTIONS
    assert ever <= MOST_CONNECTIONS
