"""The whole path on a real server: admission, worker, provider, log, stream."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import psycopg
import pytest
from procrastinate.contrib.django.utils import connector_params

from accounts.services import token_create
from chat.models import Message, Run
from chat.providers.catalogue import Catalogue, ResolvedModel
from chat.types import Completion, Delta, ModelRequest, TextDelta
from tests.chat.wire.parser import parse

OPEN_STREAMS = 200


class Gated:
    """A provider of the server's loop: a first word, then nothing until ``release``."""

    name = "gated"

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.gate: asyncio.Event | None = None
        self.open = 0
        self.closed = threading.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[tuple[Delta, ...]]:
        if self.gate is None:
            self.loop, self.gate = asyncio.get_running_loop(), asyncio.Event()
        self.open += 1
        try:
            yield (TextDelta("Once "),)
            await self.gate.wait()
            yield (TextDelta("upon a time"),)
            yield (Completion(text="Once upon a time"),)
        finally:
            self.open -= 1
            self.closed.set()

    def release(self) -> None:
        assert self.loop is not None
        assert self.gate is not None
        self.loop.call_soon_threadsafe(self.gate.set)


@dataclass
class Caller:
    url: str
    headers: dict[str, str]

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url, headers=self.headers, timeout=30, limits=httpx.Limits()
        )


@pytest.fixture
def gated(monkeypatch):
    provider = Gated()

    async def resolve(self, reference=None):
        return ResolvedModel(provider, "m")

    monkeypatch.setattr(Catalogue, "resolve", resolve)
    return provider


@pytest.fixture
def caller(server, user):
    _token, secret = token_create(owner=user, name="test")
    return Caller(server.url, {"Authorization": f"Bearer {secret}"})


async def read_until(response, marker: bytes) -> bytes:
    seen = b""
    async for part in response.aiter_raw():
        seen += part
        if marker in seen:
            break
    return seen


async def ask(client, content="Tell me", path="/api/completions/"):
    request = client.build_request("POST", path, json={"content": content})
    return await client.send(request, stream=True)


def server_connections() -> int:
    """Connections to this database, but for the one that asks."""
    with psycopg.connect(**connector_params()) as asking:
        found = asking.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_streams_hold_no_thread_and_at_most_20_connections_when_200_are_open(caller, gated):
    async def play() -> tuple[list[int], list[int], list[bytes]]:
        threads, connections = [], []
        async with caller.client() as client:
            first = await ask(client)
            await read_until(first, b"Once ")
            threads.append(threading.active_count())
            others = await asyncio.gather(*(ask(client) for _ in range(OPEN_STREAMS - 1)))
            parts = await asyncio.gather(*(_first_word(r) for r in others))
            assert len(parts) == OPEN_STREAMS - 1
            threads.append(threading.active_count())
            connections.append(await asyncio.to_thread(server_connections))
            gated.release()
            ends = await asyncio.gather(*(_rest(r) for r in others))
            await first.aclose()
        return threads, connections, ends

    threads, connections, ends = asyncio.run(play())
    assert all(end.endswith(b"data: [DONE]\n\n") for end in ends)
    assert connections[0] <= 20
    # 8 units, 16 tools and the admission's 32 at most, whatever the number of streams.
    assert threads[1] - threads[0] <= 60


readers: dict[int, AsyncIterator[bytes]] = {}


async def _first_word(response) -> bytes:
    reader = readers[id(response)] = response.aiter_raw()
    seen = b""
    while b"Once " not in seen:
        seen += await anext(reader)
    return seen


async def _rest(response) -> bytes:
    return b"".join([part async for part in readers.pop(id(response))])


def test_stop_from_elsewhere_ends_the_stream_and_the_upstream_within_a_second(caller, gated, user):
    async def play() -> bytes:
        async with caller.client() as client:
            response = await ask(client)
            reader = readers[id(response)] = response.aiter_raw()
            seen = b""
            while b"Once " not in seen:
                seen += await anext(reader)
            run_id = response.headers["X-Run-Id"]
            stopped = await client.post(f"/api/runs/{run_id}/stop/")
            assert stopped.status_code == 200
            async with asyncio.timeout(1):
                seen += await _rest(response)
            again = await client.post(f"/api/runs/{run_id}/stop/")
            assert again.json()["stop_reason"] == "stopped"
            return seen

    told = parse(asyncio.run(play()))
    assert gated.closed.wait(1)
    assert gated.open == 0
    done = next(json.loads(event.data) for event in told if event.name == "done")
    assert done["reason"] == "stopped"
    message = Message.objects.get(role="assistant")
    assert (message.content, message.stopped) == ("Once ", True)


def test_client_that_leaves_detaches_and_the_run_goes_on(caller, gated):
    async def play() -> str:
        async with caller.client() as client:
            response = await ask(client)
            await read_until(response, b"Once ")
            await response.aclose()
            gated.release()
            path = f"/api/runs/{response.headers['X-Run-Id']}/"
            async with asyncio.timeout(10):
                while (await client.get(path)).json()["status"] != "finished":
                    pass
            events = await client.get(f"{path}events/")
            return str(events.text)

    assert '"reason":"end_turn"' in asyncio.run(play())
    assert Message.objects.get(role="assistant").content == "Once upon a time"


def test_second_message_is_refused_while_the_first_is_answered(caller, gated):
    async def play() -> tuple[httpx.Response, str]:
        async with caller.client() as client:
            response = await ask(client)
            await read_until(response, b"Once ")
            where = f"/api/conversations/{response.headers['X-Conversation-Id']}/completions/"
            busy = await client.post(where, json={"content": "And?"})
            gated.release()
            return busy, str(response.headers["X-Run-Id"])

    busy, run_id = asyncio.run(play())
    assert busy.status_code == 409
    assert busy.json()["error"]["code"] == "conversation_busy"
    assert busy.json()["error"]["run"] == run_id


def test_client_that_reacts_to_done_never_meets_busy(caller, gated):
    async def play() -> None:
        async with caller.client() as client:
            response = await ask(client)
            await read_until(response, b"Once ")
            gated.release()
            where = f"/api/conversations/{response.headers['X-Conversation-Id']}/completions/"
            run = f"/api/runs/{response.headers['X-Run-Id']}/events/"
            assert "event: done" in (await client.get(run)).text
            for _ in range(10):
                answer = await ask(client, "again", where)
                assert answer.status_code == 200
                assert b"end_turn" in await read_until(answer, b"event: done")

    asyncio.run(play())
    assert set(Run.objects.values_list("status", flat=True)) == {"finished"}
