"""Undo on the chat page: with and without a script, for the owner alone."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.urls import reverse

from chat.events import (
    CallShown,
    Done,
    MessageCompleted,
    RunStarted,
    ToolResult,
    ToolStarted,
    ToolUse,
)
from chat.models import Message, Run, RunEvent, ToolCall
from chat.pages.transcript import run_undo_states
from chat.runs import event_log
from chat.runs.lifecycle import run_start
from chat.types import Touched
from chat.wire.html import HtmlStream
from notes.authors import Author
from notes.models import Note, NoteRevision
from notes.services import note_create, note_update
from tests.chat.api.conftest import store
from tests.chat.pages.test_approvals import bare, page_of, section
from tests.chat.wire.page import MiniPage
from tests.chat.wire.parser import parse

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}
ALL = "Undo everything this answer changed"


@pytest.fixture
def run(user) -> Run:
    """A finished answer of three calls: two made a note each, one only read."""
    run = run_start(owner=user, content="Make two notes.")
    names = ("note_create", "note_create", "note_search")
    message = Message.objects.create(
        conversation=run.conversation,
        run=run,
        parent_id=run.message_id,
        role="assistant",
        finish_reason="tool_use",
        iteration=1,
    )
    run.conversation.leaf = message
    run.conversation.save()
    results = [made(user, run, message, position, name) for position, name in enumerate(names)]
    calls = tuple(
        CallShown(id=result.tool_call_id, name=result.tool, arguments="{}") for result in results
    )
    store(
        run,
        RunStarted(
            run_id=run.id,
            conversation_id=run.conversation_id,
            message_id=run.message_id,
            model="m",
            provider="p",
        ),
        MessageCompleted(message_id=message.id, finish_reason="tool_use"),
        ToolUse(calls=calls),
        *[
            event
            for result in results
            for event in (ToolStarted(tool_call_id=result.tool_call_id), result)
        ],
        Done(run_id=run.id, reason="end_turn"),
    )
    run.refresh_from_db()
    return run


def author_of(call, user, run) -> Author:
    return Author(
        kind="assistant",
        user=user,
        via="tool",
        conversation_id=run.conversation_id,
        run_id=run.id,
        call_id=call.call_id,
    )


def made(user, run, message, position, name) -> ToolResult:
    """One call of the run, done; what came of it."""
    call = ToolCall.objects.create(
        owner=user,
        conversation=run.conversation,
        message=message,
        position=position,
        call_id=f"call_{position}",
        name=name,
        arguments="{}",
        status="done",
        result="ok",
    )
    if name == "note_create":
        note = note_create(owner=user, author=author_of(call, user, run), title=f"Note {position}")
    else:
        note = Note.objects.filter(owner=user)[0]
    touched = Touched(kind="note", id=str(note.id), title=note.title)
    call.extra = {"touched": [{"kind": "note", "id": str(note.id), "title": note.title}]}
    call.save()
    return ToolResult(
        tool_call_id=call.call_id,
        tool=name,
        content="ok",
        is_error=False,
        status="done",
        duration_ms=0,
        touched=(touched,),
    )


def shown(client, run) -> str:
    url = reverse("chat:conversation", args=[run.conversation_id])
    return section(page_of(client.get(url)), run)


def streamed(run) -> str:
    """The run as its stream puts it on the page of who connects now."""
    page = MiniPage(f'<section id="run-{run.id}"></section>')
    stream = HtmlStream(run.id)
    for logged in event_log.events_after(run_id=run.id, position=(0, 0)):
        if stream.shows_undo([logged]):
            stream.undo = run_undo_states(owner=run.owner, run_id=run.id)
        for event in parse(stream.encode([logged])):
            page.apply(event.name, event.json)
    return page.inner(f"run-{run.id}")


def unknown(run, position: int) -> None:
    """Its answer ended while it ran: nobody was told what came of it."""
    call = ToolCall.objects.get(message__run=run, position=position)
    call.status, call.is_error, call.extra = "unknown", True, {}
    call.save()
    event = RunEvent.objects.get(run=run, kind="tool_result", data__tool_call_id=call.call_id)
    event.data |= {"status": "unknown", "is_error": True, "touched": []}
    event.save()


def call_url(run, position: int) -> str:
    message = Message.objects.get(run=run, role="assistant")
    return reverse("chat:call-undo", args=[message.id, position])


def run_url(run) -> str:
    return reverse("chat:run-undo", args=[run.id])


def test_what_changed_a_note_has_an_undo_and_so_has_all_of_it(client_of, user, run):
    page = shown(client_of(user), run)
    assert page.count("data-undo") == 3
    assert call_url(run, 0) in page
    assert call_url(run, 1) in page
    assert call_url(run, 2) not in page
    assert page.count(ALL) == 1
    assert bare(page) == bare(streamed(run))


def test_call_of_unknown_outcome_that_took_effect_can_be_undone(client_of, user, run):
    unknown(run, 1)
    page = shown(client_of(user), run)
    assert page.count("data-undo") == 3
    assert call_url(run, 1) in page
    assert bare(page) == bare(streamed(run))
    client_of(user).post(call_url(run, 1))
    assert [note.title for note in Note.objects.owned_by(user)] == ["Note 0"]


def test_call_of_unknown_outcome_that_took_no_effect_has_no_undo(client_of, user, run):
    unknown(run, 1)
    NoteRevision.objects.filter(tool_call__position=1).delete()
    page = shown(client_of(user), run)
    assert page.count("data-undo") == 1
    assert bare(page) == bare(streamed(run))


def test_line_says_undone_after_a_reload_and_in_the_stream(client_of, user, run):
    client = client_of(user)
    response = client.post(call_url(run, 0))
    assert response.status_code == 302
    assert [note.title for note in Note.objects.owned_by(user)] == ["Note 1"]
    page = shown(client, run)
    assert page.count(">undone<") == 1
    assert page.count("data-undo") == 1
    assert ALL not in page
    assert bare(page) == bare(streamed(run))


def test_undo_of_all_without_a_script_goes_back_to_the_page_and_says_so(client_of, user, run):
    client = client_of(user)
    response = client.post(run_url(run), follow=True)
    page = page_of(response)
    assert "Undone in 2 notes." in page
    assert page.count(">undone<") == 2
    assert "data-undo" not in page
    assert not Note.objects.owned_by(user).exists()
    revision = NoteRevision.objects.order_by("-version")[0]
    assert (revision.author_kind, revision.via, revision.change) == ("person", "page", "deleted")
    assert "There is nothing to undo." in page_of(client.post(run_url(run), follow=True))


def test_undo_with_a_script_answers_the_parts_that_changed(client_of, user, run):
    client = client_of(user)
    answer = client.post(call_url(run, 1), headers=JSON).json()
    assert (answer["message"], answer["complete"]) == ("Undone.", True)
    page = shown(client, run)
    parts = answer["html"]
    assert parts.count(">undone<") == 1
    assert parts.count("data-undo") == 1
    for part in parts.split("<span")[1:]:
        assert part.split("id=")[1].split('"')[1] in page


def test_what_a_person_changed_since_stays_and_is_named(client_of, user, run):
    note = Note.objects.get(title="Note 0")
    note_update(owner=user, author=Author.person(user, "page"), note_id=note.id, content="mine")
    client = client_of(user)
    answer = client.post(run_url(run), headers=JSON).json()
    assert answer["complete"] is False
    assert "“Note 0” stays. You changed it since." in answer["message"]
    page = shown(client, run)
    assert "data-undo" not in page
    assert page.count(">No undo: you changed it since<") == 1
    assert page.count(">undone<") == 1
    assert bare(page) == bare(streamed(run))


def test_page_that_follows_a_run_is_told_in_the_end_what_stands_on_another(client_of, user, run):
    note = Note.objects.get(title="Note 0")
    call = ToolCall.objects.get(position=1, message__run=run)
    note_update(owner=user, author=author_of(call, user, run), note_id=note.id, content="b")
    page = MiniPage(f'<section id="run-{run.id}"></section>')
    stream = HtmlStream(run.id)
    for logged in event_log.events_after(run_id=run.id, position=(0, 0)):
        if isinstance(logged.event, Done):
            assert page.html.count("data-undo") == 2
            assert stream.shows_undo([logged])
            stream.undo = run_undo_states(owner=user, run_id=run.id)
        for event in parse(stream.encode([logged])):
            page.apply(event.name, event.json)
    live = page.inner(f"run-{run.id}")
    assert ">Changed again since: undo that first<" in live
    assert live.count(ALL) == 1
    assert bare(live) == bare(shown(client_of(user), run))
    client_of(user).post(run_url(run))
    assert not Note.objects.owned_by(user).exists()


def test_undo_is_for_the_owner_alone(client_of, other_user, run):
    for url in (run_url(run), call_url(run, 0)):
        assert client_of(other_user).post(url).status_code == 404
        assert client_of().post(url)["Location"].startswith("/login/")
    assert client_of(other_user).post(reverse("chat:run-undo", args=[uuid4()])).status_code == 404
    assert client_of(run.owner).post(call_url(run, 7)).status_code == 404
    assert client_of(run.owner).get(run_url(run)).status_code == 405
    assert Note.objects.filter(deleted=None).count() == 2
