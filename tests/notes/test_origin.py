"""Which notes hold text from outside, and which tool results say so."""

import math
from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from notes import services, tools
from notes.authors import Author
from notes.models import Note
from tests.notes.writing import by, note_create, note_update
from tools.definitions import ToolContext


@pytest.fixture
def context(alice: User) -> ToolContext:
    return ToolContext(user_id=alice.pk, deadline=math.inf)


@pytest.fixture
def foreign(alice: User) -> Note:
    author = Author.person(alice, "import")
    return services.note_create(owner=alice, author=author, title="Foreign", content="apples")


@pytest.fixture
def own(alice: User) -> Note:
    return note_create(owner=alice, title="Own", content="pears")


def test_results_say_that_they_hold_text_from_outside(context: ToolContext, foreign: Note):
    assert tools.note_read(context, foreign.pk).from_outside
    assert tools.note_search(context, "apples").from_outside
    assert tools.note_list(context).from_outside


def test_results_say_nothing_of_the_kind_about_ones_own_notes(
    context: ToolContext, foreign: Note, own: Note
):
    assert not tools.note_read(context, own.pk).from_outside
    assert not tools.note_search(context, "pears").from_outside
    assert not tools.note_list(context, limit=1).from_outside


def test_foreign_note_of_another_person_says_nothing(
    context: ToolContext, mallory: User, own: Note
):
    author = Author.person(mallory, "import")
    services.note_create(owner=mallory, author=author, title="Theirs", content="pears")
    assert not tools.note_search(context, "pears").from_outside


@pytest.mark.parametrize("tainted", [False, True])
def test_assistant_marks_what_it_writes_where_it_saw_text_from_outside(
    context: ToolContext, own: Note, tainted: bool
):
    context = replace(context, tainted=tainted)
    tools.note_create(context, title="New")
    tools.note_update(context, own.pk, mode="append", content="!")

    assert Note.objects.get(title="New").from_outside is tainted
    own.refresh_from_db()
    assert own.from_outside is tainted


def test_import_into_a_note_marks_it(alice: User, own: Note):
    importing = Author.person(alice, "import")
    services.note_update(owner=alice, author=importing, note_id=own.pk, content="pears")
    own.refresh_from_db()
    assert (own.from_outside, own.version) == (False, 1)

    services.note_update(owner=alice, author=importing, note_id=own.pk, content="plums")

    own.refresh_from_db()
    assert own.from_outside


def test_note_stays_foreign_until_its_owner_vouches_for_it(alice: User, foreign: Note, client_of):
    note_update(owner=alice, note_id=foreign.pk, content="my own words")
    services.note_delete(owner=alice, author=by(alice), note_id=foreign.pk)
    services.note_restore(owner=alice, author=by(alice), note_id=foreign.pk)
    foreign.refresh_from_db()
    assert foreign.from_outside
    client = client_of(alice)
    path = f"/api/notes/{foreign.pk}/"

    refused = client.patch(path, {"from_outside": True}, content_type="application/json")
    taken = client.patch(path, {"from_outside": False}, content_type="application/json")

    assert refused.status_code == 400
    assert "from_outside" in refused.json()["error"]["fields"]
    assert (taken.status_code, taken.json()["from_outside"]) == (200, False)
    assert taken.json()["content"] == "my own words"


def test_page_lets_the_owner_vouch_for_what_it_shows(alice: User, foreign: Note, client_of):
    client = client_of(alice)
    page, vouch = (
        reverse("notes:note", args=[foreign.pk]),
        reverse("notes:vouch", args=[foreign.pk]),
    )
    assert "From outside:" in client.get(page).content.decode()
    note_update(owner=alice, note_id=foreign.pk, content="plums")

    stale = client.post(vouch, {"version": foreign.version}, follow=True)
    assert "Read it again first" in stale.content.decode()
    assert "From outside:" in stale.content.decode()
    foreign.refresh_from_db()
    taken = client.post(vouch, {"version": foreign.version}, follow=True)

    assert "You vouch for this note now." in taken.content.decode()
    assert "From outside:" not in taken.content.decode()
    foreign.refresh_from_db()
    assert (foreign.from_outside, foreign.content) == (False, "plums")


def test_nobody_else_can_vouch(foreign: Note, mallory: User, client_of, client: Client):
    vouch = reverse("notes:vouch", args=[foreign.pk])

    assert client_of(mallory).post(vouch, {"version": 1}).status_code == 404
    assert client.post(vouch, {"version": 1}).headers["Location"].startswith("/login/")
    foreign.refresh_from_db()
    assert foreign.from_outside


def test_page_of_ones_own_note_says_nothing_about_outside(alice: User, own: Note, client_of):
    page = client_of(alice).get(reverse("notes:note", args=[own.pk])).content.decode()
    assert "From outside:" not in page
