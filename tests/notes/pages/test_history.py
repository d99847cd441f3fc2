"""History, restoring, the bin and Undo on the pages; each for its owner alone, without script."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chat.models import Conversation, Message, Run, ToolCall
from notes import services
from notes.authors import Author
from notes.models import Note, NoteRevision
from notes.pages import history
from tests.notes.pages.test_pages import page_of, url
from tests.notes.writing import note_create, note_delete, note_update

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client_of, user):
    return client_of(user)


@pytest.fixture
def note(user):
    """A note of three versions: by its owner, by an assistant, by a program of its owner."""
    note = note_create(owner=user, title="Plan", content="- milk\n- eggs", tags=["list"])
    services.note_update(owner=user, author=assistant_of(user), note_id=note.pk, content="- milk")
    program = Author(kind="person", user=user, via="rest", token_id=note.pk, token_name="my script")
    services.note_update(owner=user, author=program, note_id=note.pk, title="Shopping", tags=[])
    return note


def assistant_of(user) -> Author:
    conversation = Conversation.objects.create(owner=user, title="Weekly <plan>")
    message = Message.objects.create(conversation=conversation, role="assistant")
    run = Run.objects.create(owner=user, conversation=conversation, message=message)
    ToolCall.objects.create(
        owner=user, conversation=conversation, message=message, position=0, call_id="call_1"
    )
    return Author(
        kind="assistant",
        user=user,
        via="tool",
        conversation_id=conversation.pk,
        run_id=run.pk,
        call_id="call_1",
    )


def version_url(note: Note, version: int, name: str = "version") -> str:
    return reverse(f"notes:{name}", args=[note.pk, version])


def versions_of(page: str) -> list[str]:
    """The list of versions as text, one each."""
    found = re.findall(r'<a href="[^"]*/history/\d+/[^"]*"[^>]*>(.*?)</a>', page, re.S)
    return [re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", each)).strip() for each in found]


def test_history_lists_who_did_what(browser, note):
    rows = versions_of(page_of(browser.get(url("history", note))))
    assert [re.sub(r" \d+ \w+ \d+, .*", "", row) for row in rows] == [
        "Edited by you with the token “my script”",
        "Edited by the assistant",
        "Created by you",
    ]
    assert rows[0].endswith("version 3")


def test_version_by_an_assistant_leads_to_its_answer(browser, note):
    page = page_of(browser.get(version_url(note, 2)))
    message = Message.objects.get()
    link = f'href="/chat/{message.conversation_id}/#m-{message.pk}">Weekly &lt;plan&gt;</a>'
    assert link in page
    Conversation.objects.all().delete()
    assert "by the assistant" in page_of(browser.get(version_url(note, 2)))


def test_version_shows_what_changed(browser, note):
    page = page_of(browser.get(version_url(note, 2)))
    assert "<del>- eggs</del>" in page
    assert "<p>- milk</p>" in page
    page = page_of(browser.get(version_url(note, 3)))
    assert "<del>Plan</del> <ins>Shopping</ins>" in page
    assert "<del>list</del>" in page
    assert "This is the note as it is now" in page
    assert "<ins>- milk</ins>" in page_of(browser.get(version_url(note, 1)))


def test_versions_escape_what_they_show(browser, user):
    note = note_create(owner=user, title="<i>a</i>", content="one <b>two</b> three four")
    note_update(owner=user, note_id=note.pk, title="<i>b</i>", content="one <b>2</b> three four")
    page = page_of(browser.get(version_url(note, 2)))
    assert "<del>one &lt;b&gt;<mark>two</mark>&lt;/b&gt; three four</del>" in page
    assert "<ins>one &lt;b&gt;<mark>2</mark>&lt;/b&gt; three four</ins>" in page
    assert "<ins>&lt;i&gt;b&lt;/i&gt;</ins>" in page
    assert "<i>" not in page
    assert "<b>" not in page


def test_version_of_too_much_is_summed_up(browser, user):
    note = note_create(owner=user, content="\n".join(map(str, range(10_001))))
    page = page_of(browser.get(version_url(note, 1)))
    assert "10001 lines added, 0 removed" in page


def test_note_whose_changes_were_never_recorded_says_so(browser, user):
    note = Note.objects.create(owner=user, title="old")
    assert "No changes yet" in page_of(browser.get(url("history", note)))


def test_history_goes_on_on_older_pages(browser, user, note, monkeypatch):
    monkeypatch.setattr(history, "PAGE_SIZE", 2)
    page = page_of(browser.get(url("history", note)))
    assert len(versions_of(page)) == 2
    (older,) = re.findall(r'href="([^"]*\?page=2)">Older versions', page)
    page = page_of(browser.get(older))
    assert len(versions_of(page)) == 1
    assert "Older versions" not in page
    assert page_of(browser.get(f"{url('history', note)}?page=200"))


def test_version_that_is_restored_is_there_again(browser, note):
    path = version_url(note, 1, "version-restore")
    assert browser.get(path).status_code == 405
    response = browser.post(path, follow=True)
    assert response.redirect_chain == [(url("note", note), 302)]
    assert "Version 1 is restored." in response.content.decode()
    note.refresh_from_db()
    assert (note.title, note.content, note.version) == ("Plan", "- milk\n- eggs", 4)
    newest = NoteRevision.objects.get(version=4)
    assert (newest.change, newest.restored_version, newest.via) == ("restored", 1, "page")
    assert versions_of(page_of(browser.get(url("history", note))))[0].startswith(
        "Restored version 1 by you"
    )


def test_version_that_is_not_kept_is_missing(browser, note):
    for version in (0, 9, 10**30):
        assert browser.get(version_url(note, version)).status_code == 404
        assert browser.post(version_url(note, version, "version-restore")).status_code == 404


def test_pages_leave_revisions_with_their_author(browser, user):
    data = {"title": "T", "folder": "/", "tags": "", "content": "1"}
    browser.post("/notes/new/", data)
    note = Note.objects.get()
    browser.post(url("edit", note), data | {"content": "2", "version": 1})
    browser.post(url("delete", note))
    browser.post(url("restore", note))
    rows = NoteRevision.objects.order_by("version")
    assert [row.change for row in rows] == ["created", "edited", "deleted", "undeleted"]
    assert {(row.author_kind, row.via, row.user_id, row.token_id) for row in rows} == {
        ("person", "page", user.pk, None)
    }


def test_bin_shows_beginnings_and_histories_and_its_place(browser, note):
    browser.post(url("delete", note))
    page = page_of(browser.get("/notes/bin/"))
    assert "<p>- milk</p>" in page
    assert f'href="{url("history", note)}"' in page
    assert 'href="/notes/bin/" aria-current="page"' in page
    assert "The bin ends before page 2." in page_of(browser.get("/notes/bin/?page=2"))
    for path in (url("history", note), version_url(note, 2)):
        page = page_of(browser.get(path))
        assert "eggs" in page or "Deleted" in page
        assert "In the bin since" in page
        assert f'action="{url("restore", note)}"' in page
        assert 'href="/notes/bin/">Open the bin' in page
        assert "Restore this version" not in page


def test_undo_takes_the_note_out_of_the_bin(browser, note):
    browser.post(url("delete", note))
    response = browser.post(url("restore", note), follow=True)
    assert response.redirect_chain == [(url("note", note), 302)]
    assert "“Shopping” is restored." in response.content.decode()
    assert "The bin is empty" in page_of(browser.get("/notes/bin/"))


def test_bin_lists_what_can_be_restored(browser, user, note):
    assert "The bin is empty" in page_of(browser.get("/notes/bin/"))
    note_delete(owner=user, note_id=note.pk)
    other = note_create(owner=user, title="<b>", content="<i>")
    note_delete(owner=user, note_id=other.pk)
    page = page_of(browser.get("/notes/bin/"))
    assert page.index("&lt;b&gt;</h2>") < page.index("Shopping</h2>")
    assert f'action="{url("restore", note)}"' in page
    assert "<i>" not in page


def test_bin_goes_on_on_older_pages(browser, user, monkeypatch):
    monkeypatch.setattr(history, "PAGE_SIZE", 1)
    for title in ("first", "second"):
        note_delete(owner=user, note_id=note_create(owner=user, title=title).pk)
    page = page_of(browser.get("/notes/bin/"))
    assert ("second</h2>" in page, "first</h2>" in page) == (True, False)
    page = page_of(browser.get("/notes/bin/?page=2"))
    assert ("second</h2>" in page, "first</h2>" in page) == (False, True)
    assert "Deleted earlier" not in page


@pytest.mark.parametrize("deleted", [False, True])
def test_a_strangers_history_and_bin_show_nothing(client_of, user, other_user, note, deleted):
    if deleted:
        note_delete(owner=user, note_id=note.pk)
    stranger = client_of(other_user)
    for path in (url("history", note), version_url(note, 1)):
        assert stranger.get(path).status_code == 404
    for path in (url("restore", note), version_url(note, 1, "version-restore")):
        assert stranger.post(path).status_code == 404
    assert "The bin is empty" in page_of(stranger.get("/notes/bin/"))
    note.refresh_from_db()
    assert (note.deleted is not None, note.title) == (deleted, "Shopping")


def test_anonymous_visitors_are_asked_to_log_in(client_of, note):
    paths = ["/notes/bin/", url("history", note), version_url(note, 1), url("restore", note)]
    for path in [*paths, version_url(note, 1, "version-restore")]:
        for response in (client_of().get(path), client_of().post(path)):
            assert response.status_code == 302
            assert response["Location"].startswith("/login/")


def test_restoring_needs_the_csrf_token(client_of, user, note):
    client = client_of(user, enforce_csrf_checks=True)
    for path in (version_url(note, 1, "version-restore"), url("restore", note)):
        assert client.post(path).status_code == 403
    note.refresh_from_db()
    assert note.version == 3


def test_pages_ask_as_often_for_many_rows_as_for_few(browser, user, note):
    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            page_of(browser.get(path))
        return len(captured)

    def add(number: int) -> None:
        author = assistant_of(user)
        services.note_update(owner=user, author=author, note_id=note.pk, title=str(number))
        note_delete(owner=user, note_id=note_create(owner=user).pk)

    paths = ["/notes/bin/", url("history", note), version_url(note, 2)]
    add(0)
    few = [queries(path) for path in paths]
    for number in range(1, 8):
        add(number)
    assert [queries(path) for path in paths] == few
