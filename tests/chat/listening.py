"""Servers that share a database, a provider that speaks when it is let, and who listens to them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from accounts.services import token_create
from chat.providers.catalogue import Catalogue, ResolvedModel
from chat.types import Completion, Delta, ModelRequest, RequestedCall, TextDelta
from tests.chat.wire.parser import Event, parse
from tests.conftest import Server, _Running

LISTEN_SECONDS = 20


@pytest.fixture
def other_server(server, monkeypatch) -> Iterator[Server]:
    """A second server on the same database, which carries no runs: it hears of them alone."""
    monkeypatch.setattr("django.conf.settings.NOTEWIRE_WORKER", False)
    running = _Running()
    running.start()
    try:
        yield Server(running.url, running.stop)
    finally:
        running.stop()


@pytest.fixture
def secret(server, user) -> str:
    return token_create(owner=user, name="listener")[1]


def connected(server: Server, secret: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {secret}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=LISTEN_SECONDS)


class Paced:
    """Each word waits for ``step``; after ``per_call`` of them a tool is called."""

    name = "paced"

    def __init__(self, words: int, *, word: str = "word ", per_call: int = 4) -> None:
        self.word = word
        self.per_call = per_call
        self.left = words
        self._steps = threading.Semaphore(0)

    def step(self, count: int = 1) -> None:
        self._steps.release(count)

    async def stream(self, request: ModelRequest) -> AsyncIterator[tuple[Delta, ...]]:
        said: list[str] = []
        while self.left and len(said) < self.per_call:
            while not self._steps.acquire(blocking=False):
                await asyncio.sleep(0.001)
            self.left -= 1
            said.append(self.word)
            yield (TextDelta(self.word),)
        calls = (RequestedCall(id="", name="current_time", arguments="{}"),) if self.left else ()
        yield (Completion(text="".join(said), calls=calls),)


@pytest.fixture
def chosen(monkeypatch):
    """``chosen(provider)``: it answers every run, on whatever server."""

    def choose(provider) -> None:
        async def resolve(self, reference=None):
            return ResolvedModel(provider, "m")

        monkeypatch.setattr(Catalogue, "resolve", resolve)

    return choose


class Listener(threading.Thread):
    """Reads a stream until it has told ``count`` events of that name."""

    def __init__(self, client: httpx.Client, path: str, name: str, count: int, **headers) -> None:
        super().__init__(name="listener", daemon=True)
        self.client, self.path, self.headers = client, path, headers
        self.marker, self.count = f"event: {name}\n".encode(), count
        self.connected = threading.Event()
        self.seen = b""

    def run(self) -> None:
        with self.client.stream("GET", self.path, headers=self.headers) as response:
            for part in response.iter_raw():
                self.seen += part
                self.connected.set()
                complete = self.seen[: self.seen.rfind(b"\n\n") + 2]
                if complete.count(self.marker) >= self.count:
                    return

    def listen(self) -> Listener:
        self.start()
        assert self.connected.wait(LISTEN_SECONDS)
        return self

    def heard(self) -> list[Event]:
        self.join(LISTEN_SECONDS)
        assert not self.is_alive(), self.seen.decode()
        return parse(self.seen)


def next_event(client: httpx.Client, path: str, after: str) -> Event | None:
    """Connect, take the first event after that one, and hang up; None where nothing follows."""
    headers = {"Last-Event-ID": after} if after else {}
    with client.stream("GET", path, headers=headers) as response:
        if response.status_code == 204:
            return None
        assert response.status_code == 200
        seen = b""
        for part in response.iter_raw():
            seen += part
            if events := parse(seen[: seen.rfind(b"\n\n") + 2]):
                return events[0]
    return None
