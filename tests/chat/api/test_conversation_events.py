"""Following a conversation: across runs, from any point, and whoever may."""

import asyncio
import json
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import pytest

from chat.api.following import follow_conversation
from chat.events import Done
from chat.models import Conversation, Run
from chat.runs import event_log
from chat.runs import runtime as runtime_module
from chat.runs.lifecycle import run_start
from chat.transcript.conversations import conversation_delete
from chat.wire import sse
from tests.chat.api.conftest import FakeRuntime, store
from tests.chat.wire.parser import parse
from tests.chat.wire.samples import STORY
from tools.threads import unit_of_work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("units")]

LAST = len(STORY)
NOBODYS = "00000000-0000-4000-8000-000000000000"


def fake() -> Any:
    return FakeRuntime()


def path(conversation) -> str:
    return f"/api/conversations/{conversation.id}/events/"


def ids(run, first=1, last=LAST) -> list[str]:
    return [f"{run.id}.1-{seq}" for seq in range(first, last + 1)]


@pytest.fixture
def runs(user, conversation) -> list[Run]:
    """Two runs of the conversation that are over."""
    made = []
    for content in ("Make a note.", "And another."):
        run = run_start(owner=user, conversation_id=conversation.id, content=content)
        store(run, *STORY)
        made.append(run)
    return made


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(runtime_module, "KEEP_ALIVE_SECONDS", 0.005)


def told(conversation, resume="") -> list:
    """What a listener is sent before it waits for the first time."""

    async def listen():
        seen = b""
        async with aclosing(follow_conversation(fake(), conversation.id, resume)) as batches:
            async for batch in batches:
                if batch is None:
                    return seen
                seen += sse.encode(batch, full_ids=True)
        return seen

    return parse(asyncio.run(listen()))


def test_listener_is_told_all_runs_in_their_order(conversation, runs):
    first, second = runs
    assert [event.id for event in told(conversation)] == ids(first) + ids(second)


def test_listener_resumes_strictly_after_any_event_of_any_run(conversation, runs):
    whole = told(conversation)
    for n, event in enumerate(whole):
        assert told(conversation, event.id) == whole[n + 1 :]


@pytest.mark.parametrize("point", ["nonsense", "1-2", f"{NOBODYS}.1-2", "\u0661.1-2", "?"])
def test_point_of_no_run_of_the_conversation_gets_a_snapshot_of_each(conversation, runs, point):
    seen = told(conversation, point)
    assert [event.name for event in seen] == ["snapshot", "done"] * 2
    assert [event.id for event in seen] == [
        end for run in runs for end in (f"{run.id}.1-{LAST - 1}", f"{run.id}.1-{LAST}")
    ]
    assert [event.json["covers"] for event in seen[::2]] == [event.id for event in seen[::2]]


def test_point_of_another_conversation_gets_snapshots(user, conversation, runs):
    other = run_start(owner=user, content="Elsewhere.")
    store(other, *STORY)
    assert told(conversation, f"{other.id}.1-3")[0].name == "snapshot"


def test_point_that_a_run_does_not_have_gets_a_snapshot_of_that_run(conversation, runs):
    first, second = runs
    seen = told(conversation, f"{first.id}.1-999")
    assert [event.name for event in seen[:2]] == ["snapshot", "done"]
    assert [event.id for event in seen[2:]] == ids(second)


def test_listener_hears_of_a_run_that_is_started_while_it_listens(user, conversation, runs):
    async def listen():
        runtime = fake()
        seen: list[Any] = []
        async with aclosing(follow_conversation(runtime, conversation.id)) as batches:
            async for batch in batches:
                seen += batch or ()
                if batch is None and len(seen) == 2 * LAST:
                    run = await unit_of_work(_next_run, user, conversation)
                    runtime.hub.news_in_log(conversation.id)
                if len(seen) == 3 * LAST:
                    return run, seen
        raise AssertionError("the stream ended")

    run, seen = asyncio.run(asyncio.wait_for(listen(), 10))
    assert {item.run_id for item in seen[2 * LAST :]} == {run.id}
    assert isinstance(seen[-1].event, Done)


def _next_run(user, conversation) -> Run:
    run = run_start(owner=user, conversation_id=conversation.id, content="More.")
    store(run, *STORY)
    return run


def test_stream_ends_where_the_conversation_is_deleted(user, conversation, runs):
    async def listen():
        runtime = fake()
        batches = follow_conversation(runtime, conversation.id)
        async with aclosing(batches):
            while await anext(batches) is not None:
                pass
            await unit_of_work(conversation_delete, owner=user, conversation_id=conversation.id)
            return [batch async for batch in batches]

    assert asyncio.run(asyncio.wait_for(listen(), 10)) == []


def test_listeners_are_told_of_a_start_and_of_the_end_of_the_conversation(
    user, conversation, monkeypatch
):
    heard = []
    monkeypatch.setattr(event_log, "news_notify", lambda *, ids: heard.append(list(ids)))
    run = run_start(owner=user, conversation_id=conversation.id, content="Private words.")
    conversation_delete(owner=user, conversation_id=conversation.id)
    assert heard == [[conversation.id], [conversation.id, run.id]]


def test_stream_opens_for_the_owner_in_both_formats(client_of, user, conversation):
    client = client_of(user)
    assert client.get(path(conversation))["Content-Type"].startswith("text/event-stream")
    lines = client.get(path(conversation), headers={"accept": "application/x-ndjson"})
    assert lines["Content-Type"].startswith("application/x-ndjson")


def test_stream_of_a_stranger_is_not_found(client_of, other_user, conversation):
    client = client_of(other_user)
    response = client.get(path(conversation))
    assert response.status_code == 404
    assert response.json() == client.get(path(Conversation(id=uuid4()))).json()


def test_stream_needs_somebody(client_of, conversation):
    assert client_of().get(path(conversation)).status_code == 401


def test_stream_is_not_for_pages_of_other_sites(client_of, user, conversation):
    response = client_of(user).get(path(conversation), headers={"sec-fetch-site": "cross-site"})
    assert response.status_code == 403


def test_lines_carry_full_ids(client_of, user, conversation, runs):
    response = client_of(user).get(path(conversation), headers={"accept": "application/x-ndjson"})

    async def first() -> bytes:
        async with aclosing(response.source({"runtime": fake()})) as parts:
            return await anext(parts)

    line = json.loads(asyncio.run(first()).splitlines()[-1])
    assert (line["type"], line["event"]) == ("DONE", f"{runs[0].id}.1-{LAST}")
