"""Listeners of a real server: what they hear, and from which process."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest

from accounts.services import token_create
from chat.runs.lifecycle import run_start
from chat.transcript.conversations import conversation_create
from notes.authors import Author
from notes.services import note_create
from tests.chat.wire.parser import Event, parse

LISTEN_SECONDS = 20


@pytest.fixture
def client(server, user) -> Iterator[httpx.Client]:
    _, secret = token_create(owner=user, name="listener")
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=LISTEN_SECONDS) as client:
        yield client


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

    def heard(self) -> list[Event]:
        self.join(LISTEN_SECONDS)
        assert not self.is_alive(), self.seen.decode()
        return parse(self.seen)


def test_listener_of_a_conversation_hears_of_runs_that_others_start(client, user):
    conversation = conversation_create(owner=user)
    listener = Listener(client, f"/api/conversations/{conversation.id}/events/", "done", 2)
    listener.start()
    assert listener.connected.wait(LISTEN_SECONDS)
    # Not by way of the server: another process has only PostgreSQL to tell of it.
    first = run_start(owner=user, conversation_id=conversation.id, content="what time is it")
    client.get(f"/api/runs/{first.id}/events/")
    path = f"/api/conversations/{conversation.id}/completions/"
    second = client.post(path, json={"content": "what time is it"}).headers["x-run-id"]

    ids = [event.id for event in listener.heard()]
    assert list(dict.fromkeys(i.partition(".")[0] for i in ids)) == [
        str(first.id),
        second,
    ]
    assert len(ids) == len(set(ids))


def test_listener_of_everything_hears_of_what_another_process_changes(client, user):
    listener = Listener(client, "/api/events/", "note_created", 1)
    listener.start()
    assert listener.connected.wait(LISTEN_SECONDS)
    while b"event: snapshot" not in listener.seen:
        assert listener.is_alive()
    person = Author.person(user, "rest")
    note = note_create(owner=user, author=person, title="Private", content="Private")

    snapshot, created = listener.heard()
    assert (snapshot.name, created.name) == ("snapshot", "note_created")
    assert created.json == {"id": str(note.pk)}
    assert int(created.id) > int(snapshot.id)
