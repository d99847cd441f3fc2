"""One stream of everything that is a person's: what it tells, to whom, and on from where."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any
from uuid import UUID

import pytest

from accounts.services import token_create
from chat.api.following import follow_owner
from chat.models import Run
from chat.runs import runtime as runtime_module
from chat.runs.lifecycle import run_begin, run_close, run_start
from chat.transcript.conversations import (
    conversation_create,
    conversation_delete,
    conversation_update,
)
from chat.wire import feed as wire
from notes.authors import Author
from notes.services import note_create, note_delete, note_restore, note_update
from tests.chat.api.conftest import FakeRuntime
from tests.chat.wire.parser import Event, parse
from tools.threads import unit_of_work
from web import feed
from web.models import OwnerEvent, OwnerEventKind

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("units")]

PATH = "/api/events/"
SECRET = "a word that nobody else may read"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(runtime_module, "KEEP_ALIVE_SECONDS", 0.005)


def told(user, resume="") -> list[Event]:
    """What a listener is sent before it waits for the first time."""

    async def listen() -> bytes:
        seen = b""
        runtime: Any = FakeRuntime()
        async with aclosing(follow_owner(runtime, user.pk, resume)) as batches:
            async for batch in batches:
                if batch is None:
                    break
                seen += wire.frames(batch)
        return seen

    return parse(asyncio.run(listen()))


def kinds(events) -> list[tuple[str, str]]:
    return [(event.name, event.json["id"]) for event in events]


def cursor(user) -> str:
    """The position that a listener has before something happens."""
    [snapshot] = told(user)
    return snapshot.id


def test_listener_hears_of_a_run_from_start_to_end(user):
    conversation = conversation_create(owner=user)
    after = cursor(user)
    run = run_start(owner=user, conversation_id=conversation.id, content=SECRET)
    run_begin(run_id=run.id)
    run_close(run_id=run.id, reason="end_turn")
    heard = told(user, after)
    expected = ["run_queued", "run_running", "run_finished"]
    assert kinds(heard) == [(kind, str(run.id)) for kind in expected]
    assert heard[0].json == {"id": str(run.id), "conversation": str(conversation.id)}
    assert told(user, heard[0].id) == heard[1:]


def test_listener_hears_of_every_change_of_a_note(user):
    person = Author(kind="person", user=user, via="rest")
    note = note_create(owner=user, author=person, title=SECRET, content=SECRET)
    first = cursor(user)
    note_update(owner=user, author=person, note_id=note.pk, content="other")
    note_update(owner=user, author=person, note_id=note.pk, content="other")
    note_delete(owner=user, author=person, note_id=note.pk)
    note_restore(owner=user, author=person, note_id=note.pk)
    expected = ["note_changed", "note_deleted", "note_restored"]
    assert kinds(told(user, first)) == [(kind, str(note.pk)) for kind in expected]


def test_listener_hears_of_conversations(user):
    first = cursor(user)
    made = conversation_create(owner=user, title=SECRET)
    for _ in range(2):  # the second time nothing changes
        changes = {"title": f"{SECRET} still"}
        conversation_update(owner=user, conversation_id=made.id, changes=changes)
    conversation_delete(owner=user, conversation_id=made.id)
    run = run_start(owner=user, content=SECRET)
    assert kinds(told(user, first)) == [
        *((f"conversation_{change}", str(made.id)) for change in ("created", "changed", "deleted")),
        ("conversation_created", str(run.conversation_id)),
        ("run_queued", str(run.id)),
    ]


def test_feed_holds_no_word_of_what_it_tells(user):
    run_start(owner=user, content=SECRET)
    note_create(owner=user, author=Author(kind="person", user=user, via="rest"), content=SECRET)
    rows = list(OwnerEvent.objects.values())
    assert rows
    assert SECRET not in repr(rows)


def test_snapshot_says_what_goes_on_and_from_where_to_go_on(user):
    run = run_start(owner=user, content="Hi")
    [snapshot] = told(user)
    assert snapshot.name == "snapshot"
    assert snapshot.json == {
        "covers": snapshot.id,
        "runs": [{"id": str(run.id), "conversation": str(run.conversation_id), "status": "queued"}],
        "approvals": [],
    }
    assert told(user, snapshot.id) == []
    run_close(run_id=run.id, reason="stopped")
    assert [event.name for event in told(user, snapshot.id)] == ["run_finished"]


@pytest.mark.parametrize("point", ["99999", "x", "-1", "1-1", "\u0661", "9" * 30])
def test_unknown_point_gets_a_snapshot(user, point):
    conversation_create(owner=user)
    assert [event.name for event in told(user, point)] == ["snapshot"]


def test_point_that_is_too_old_gets_a_snapshot(user):
    first = [conversation_create(owner=user) for _ in range(3)]
    heard = feed.owner_events_after(owner_id=user.pk, position=0)
    OwnerEvent.objects.filter(object_id=first[0].id).update(created="2020-01-01T00:00Z")
    feed.owner_events_expire()
    assert [event.name for event in told(user, str(heard[0].position))] == ["snapshot"]
    assert [event.name for event in told(user, str(heard[1].position))] == ["conversation_created"]


def test_listener_that_waits_hears_of_the_next_change(user):
    async def listen() -> list[str]:
        runtime: Any = FakeRuntime()
        heard: list[str] = []
        async with aclosing(follow_owner(runtime, user.pk)) as batches:
            async for batch in batches:
                heard += [each.name for each in batch or ()]
                if batch is None:
                    await unit_of_work(conversation_create, owner=user)
                    runtime.hub.news_in_log(user.pk)
                if len(heard) == 2:
                    return heard
        raise AssertionError("the feed ended")

    assert asyncio.run(asyncio.wait_for(listen(), 10)) == ["snapshot", "conversation_created"]


def test_stranger_hears_nothing_of_it(user, other_user):
    after = cursor(other_user)
    conversation_create(owner=user)
    assert told(other_user, after) == []
    assert told(other_user)[0].json == {"covers": "0", "runs": [], "approvals": []}


def test_lines_say_the_same(client_of, user):
    run = run_start(owner=user, content="Hi")
    response = client_of(user).get(PATH, headers={"accept": "application/x-ndjson"})

    async def first() -> bytes:
        async with aclosing(response.source({"runtime": FakeRuntime()})) as parts:
            return await anext(parts)

    line = json.loads(asyncio.run(first()))
    assert (line["type"], line["event"]) == ("SNAPSHOT", line["covers"])
    assert [UUID(each["id"]) for each in line["runs"]] == [run.id]


def test_names_of_the_feed_are_closed_and_safe():
    assert all(kind.value.replace("_", "").isalpha() for kind in OwnerEventKind)


def test_stream_opens_for_a_session(client_of, user):
    assert client_of(user).get(PATH)["Content-Type"].startswith("text/event-stream")


def test_stream_needs_somebody(client_of):
    assert client_of().get(PATH).status_code == 401


@pytest.mark.parametrize(("scopes", "status"), [(["read"], 200), (["write", "chat"], 403)])
def test_token_needs_the_scope_read(client_of, user, scopes, status):
    _, secret = token_create(owner=user, name="t", scopes=scopes)
    headers = {"authorization": f"Bearer {secret}"}
    assert client_of().get(PATH, headers=headers).status_code == status


def test_stream_is_not_for_pages_of_other_sites(client_of, user):
    response = client_of(user).get(PATH, headers={"sec-fetch-site": "cross-site"})
    assert response.status_code == 403


def test_runs_of_others_are_in_no_snapshot(user, other_user):
    run_start(owner=user, content="Hi")
    assert Run.objects.count() == 1
    assert told(other_user)[0].json["runs"] == []
