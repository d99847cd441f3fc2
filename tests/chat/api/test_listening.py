"""Listeners of real servers: what they hear, from which process, and after what went wrong."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone
from procrastinate.contrib.django.utils import connector_params

from accounts.models import ApiToken
from chat.models import Run
from chat.runs import hub
from chat.runs import runtime as runtime_module
from chat.runs.lifecycle import run_start
from chat.transcript.conversations import conversation_create
from notes.authors import Author
from notes.services import note_create
from tests.chat.listening import (
    LISTEN_SECONDS,
    Listener,
    Paced,
    chosen,
    connected,
    next_event,
    other_server,
    secret,
)
from tests.chat.wire.parser import parse

__all__ = ["chosen", "other_server", "secret"]


@pytest.fixture
def client(server, secret) -> Iterator[httpx.Client]:
    with connected(server, secret) as client:
        yield client


@pytest.fixture
def clients(client, other_server, secret) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """One of the server that carries the runs, one of the other."""
    with connected(other_server, secret) as other:
        yield client, other


def test_listener_of_a_conversation_hears_of_runs_that_others_start(client, user):
    conversation = conversation_create(owner=user)
    path = f"/api/conversations/{conversation.id}"
    listener = Listener(client, f"{path}/events/", "done", 2).listen()
    # Not by way of the server: another process has only PostgreSQL to tell of it.
    first = run_start(owner=user, conversation_id=conversation.id, content="what time is it")
    client.get(f"/api/runs/{first.id}/events/")
    body = {"content": "what time is it"}
    second = client.post(f"{path}/completions/", json=body).headers["x-run-id"]

    ids = [event.id for event in listener.heard()]
    assert list(dict.fromkeys(i.partition(".")[0] for i in ids)) == [str(first.id), second]
    assert len(ids) == len(set(ids))


def test_listener_of_everything_hears_of_what_another_process_changes(client, user):
    listener = Listener(client, "/api/events/", "note_created", 1).listen()
    while b"event: snapshot" not in listener.seen:
        assert listener.is_alive()
    person = Author.person(user, "rest")
    note = note_create(owner=user, author=person, title="Private", content="Private")

    snapshot, created = listener.heard()
    assert (snapshot.name, created.name) == ("snapshot", "note_created")
    assert created.json == {"id": str(note.pk)}
    assert int(created.id) > int(snapshot.id)


def test_lost_notification_connection_is_made_again_and_the_gap_is_read(client, user):
    conversation = conversation_create(owner=user)
    path = f"/api/conversations/{conversation.id}/events/"
    listener = Listener(client, path, "done", 1).listen()
    with psycopg.connect(**connector_params(), autocommit=True) as killer:
        ended = killer.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN notewire%%'"
        ).fetchall()
    assert ended == [(True,)]
    # Nobody listens now, so this notification is lost. The next keep-alive would be 15 s away.
    began = time.monotonic()
    run_start(owner=user, conversation_id=conversation.id, content="what time is it")
    assert listener.heard()[-1].name == "done"
    assert time.monotonic() - began < runtime_module.KEEP_ALIVE_SECONDS / 2


def test_first_event_elsewhere_does_not_wait_for_the_gathering_interval(
    clients, chosen, monkeypatch
):
    here, elsewhere = clients
    chosen(Paced(1))
    monkeypatch.setattr("django.conf.settings.NOTEWIRE_GATHER_MS", 60_000)
    with here.stream("POST", "/api/completions/", json={"content": "Go."}) as response:
        path = f"/api/runs/{response.headers['x-run-id']}/events/"
        first = next_event(elsewhere, path, "")
        assert first is not None
        assert (first.name, first.id) == ("run_started", "1-1")
        here.post(path.replace("events", "stop"))


def walked(clients, path, *, step=lambda: None, last=lambda event: False) -> list:
    """Every event, each on a connection of its own, from one server after the other."""
    events: list = []
    for client in itertools.cycle(clients):
        step()
        event = next_event(client, path, events[-1].id if events else "")
        if event is None:
            return events
        events.append(event)
        if last(event):
            return events
    raise AssertionError


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (1, 1)])
def test_client_that_reconnects_at_every_event_sees_each_once_while_the_run_goes_on(
    clients, chosen, user, order
):
    provider = Paced(24)
    chosen(provider)
    run = run_start(owner=user, content="Go.")
    path = f"/api/runs/{run.id}/events/"
    ordered = tuple(clients[n] for n in order)

    seen = walked(ordered, path, step=provider.step)
    whole = parse(clients[0].get(path).content)
    assert [event.id for event in seen] == [event.id for event in whole]
    assert seen == whole
    assert [event.name for event in seen].count("tool_result") == 5
    spoken = "".join(json.loads(e.data)["text"] for e in seen if e.name == "text_delta")
    assert spoken == "word " * 24


def test_client_that_resumes_at_every_event_of_finished_runs_sees_the_rest(clients, chosen, user):
    provider = Paced(12)
    chosen(provider)
    conversation = conversation_create(owner=user)
    whole = []
    for _ in range(2):
        provider.step(12)
        provider.left = 12
        run = run_start(owner=user, conversation_id=conversation.id, content="Go.")
        of_run = parse(clients[0].get(f"/api/runs/{run.id}/events/").content)
        for client, (n, event) in zip(itertools.cycle(clients), enumerate(of_run), strict=False):
            rest = client.get(f"/api/runs/{run.id}/events/", headers={"Last-Event-ID": event.id})
            assert parse(rest.content) == of_run[n + 1 :]
        whole += [f"{run.id}.{event.id}" for event in of_run]

    path = f"/api/conversations/{conversation.id}/events/"
    seen = walked(clients, path, last=lambda event: event.id == whole[-1])
    assert [event.id for event in seen] == whole
    assert Run.objects.count() == 2


class Watched(hub.Subscription):
    """A subscription that remembers how much it ever held, and whether it was cut off."""

    peak = 0
    cut_off = 0

    def put(self, logged) -> None:
        was_behind = self.behind
        super().put(logged)
        Watched.peak = max(Watched.peak, self._bytes)
        Watched.cut_off += self.behind and not was_behind


def test_reader_that_does_not_read_holds_little_and_goes_on_from_the_log(
    client, chosen, user, monkeypatch
):
    monkeypatch.setattr(hub, "Subscription", Watched)
    monkeypatch.setattr("django.conf.settings.NOTEWIRE_GATHER_MS", 0)
    words, word = 100, "w" * 100_000
    provider = Paced(words, word=word, per_call=words)
    chosen(provider)
    run = run_start(owner=user, content="Go.")
    with slow_reader(client, f"/api/runs/{run.id}/events/") as reader:
        while client.get(f"/api/runs/{run.id}/").json()["status"] != "finished":
            provider.step(2)
            assert Watched.peak <= hub.QUEUE_BYTES
        assert Watched.peak > 0
        assert Watched.cut_off
        read = b"".join(iter(lambda: reader.recv(1 << 20), b""))

    body = read.partition(b"\r\n\r\n")[2]
    assert body.count(word.encode()) == words
    assert body.count(b"event: text_delta\n") > words / 4
    assert body.count(b"event: snapshot\n") == 0
    assert body.count(b"event: done\n") == 1


@contextmanager
def slow_reader(client: httpx.Client, path: str) -> Iterator[socket.socket]:
    """A connection whose reader has sent its request and holds as little as it can."""
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect((client.base_url.host, client.base_url.port or 80))
        reader.settimeout(LISTEN_SECONDS)
        token = client.headers["Authorization"]
        head = f"GET {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: {token}\r\n\r\n"
        reader.sendall(head.encode())
        assert reader.recv(15).startswith(b"HTTP/1.")
        yield reader


@pytest.mark.parametrize("change", ["revoked", "deactivated"])
def test_stream_of_whoever_is_not_let_in_any_more_ends_within_5_seconds(client, user, change):
    listener = Listener(client, "/api/events/", "note_created", 1).listen()
    if change == "revoked":
        ApiToken.objects.update(revoked=timezone.now())
    else:
        get_user_model().objects.update(is_active=False)
    listener.join(5)
    assert not listener.is_alive()
    assert client.get("/api/events/").status_code == 401


def test_stream_of_a_page_ends_within_5_seconds_of_the_log_out(
    client, server, chosen, user, client_of
):
    chosen(Paced(1))
    run = run_start(owner=user, content="Go.")
    browser = client_of(user)
    cookies = {name: morsel.value for name, morsel in browser.cookies.items()}
    with httpx.Client(base_url=server.url, cookies=cookies, timeout=LISTEN_SECONDS) as page:
        listener = Listener(page, f"/chat/runs/{run.id}/stream/", "done", 1).listen()
        browser.logout()
        listener.join(5)
        assert not listener.is_alive()
        assert b"event: done" not in listener.seen
        assert b"event: error" not in listener.seen
    client.post(f"/api/runs/{run.id}/stop/")
