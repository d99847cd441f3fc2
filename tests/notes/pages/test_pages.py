"""The notes pages: list, search, note, editor, delete; each for its owner alone."""

import re
from html import unescape
from uuid import uuid4

import pytest
from django.urls import reverse

from notes import search, services
from notes.exceptions import NoteSaveTimeout
from notes.models import Note, NoteRevision
from notes.pages import panes
from tests.notes.writing import note_create, note_update

pytestmark = pytest.mark.django_db


@pytest.fixture
def note(user):
    return note_create(
        owner=user, title="Groceries", content="milk & *eggs*", folder="/home/food/", tags=["list"]
    )


@pytest.fixture
def browser(client_of, user):
    return client_of(user)


def page_of(response):
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def url(name: str, note: Note) -> str:
    return reverse(f"notes:{name}", args=[note.id])


def test_list_shows_notes_folders_and_tags_with_counts(browser, note):
    page = page_of(browser.get("/notes/"))
    assert "Groceries" in page
    assert 'title="/home/food/"' in page
    assert 'title="/home/"' in page
    assert re.search(r"<span>list</span><span class=\"count\">1</span>", page)


def test_list_says_what_to_do_when_there_is_nothing(browser):
    page = page_of(browser.get("/notes/"))
    assert "No notes yet." in page
    assert "Your notes live here" in page


def test_folder_shows_what_is_below_it_and_no_sibling(browser, user, note):
    note_create(owner=user, title="Homework", folder="/homework/")
    page = page_of(browser.get("/notes/?folder=/home/"))
    assert "Groceries" in page
    assert "Homework" not in page


def test_search_works_without_script_and_answers_htmx_with_the_list_alone(browser, note):
    assert "Groceries" in page_of(browser.get("/notes/?q=milk"))
    part = page_of(browser.get("/notes/?q=milk", headers={"HX-Request": "true"}))
    assert part.lstrip().startswith('<div id="list"')
    assert "<mark>milk</mark>" in part
    assert "No note has these words." in page_of(browser.get("/notes/?q=zebra"))


def test_search_offers_the_folders_and_tags_of_its_hits_as_links(browser, user, note):
    note_create(owner=user, title="Soup", content="milk", folder="/home/", tags=["list", "a, b"])
    note_create(owner=user, title="Elsewhere", content="milk")
    page = page_of(browser.get("/notes/?q=milk"))
    pattern = r'class="facet" href="([^"]+)" title.*?<span>(.*?)</span><span class="count">(\d+)<'
    links = re.findall(pattern, page, re.DOTALL)
    assert links == [
        ("/notes/?q=milk&amp;folder=%2Fhome%2F", "home", "2"),
        ("/notes/?q=milk&amp;folder=%2Fhome%2Ffood%2F", "home/food", "1"),
        ("/notes/?q=milk&amp;tag=list", "list", "2"),
        ("/notes/?q=milk&amp;tag=a%2C+b", "a, b", "1"),
    ]
    for link, _, count in links:
        assert f"{count} found" in page_of(browser.get(unescape(link)))
    narrowed = page_of(browser.get("/notes/?q=milk&folder=/home/&tag=list"))
    assert re.findall(r'class="facet" href="([^"]+)"', narrowed) == [
        "/notes/?q=milk&amp;folder=%2Fhome%2Ffood%2F&amp;tag=list"
    ]
    assert 'class="facet"' not in page_of(browser.get("/notes/?q=elsewhere"))


def test_tags_with_commas_and_quotes_are_kept_by_the_form(browser, user):
    tags = ["red, green", 'the "best"', '"x"', "plain"]
    note = note_create(owner=user, title="T", tags=tags)
    page = page_of(browser.get(url("edit", note)))
    (value,) = re.findall(r'name="tags" value="([^"]*)"', page)
    fields = {"title": "U", "folder": "/", "tags": unescape(value), "content": "", "version": 1}
    assert browser.post(url("edit", note), fields).status_code == 302
    note.refresh_from_db()
    assert (note.title, note.tags) == ("U", tags)


def test_search_while_typing_finds_beginnings_and_keeps_that_out_of_the_address(browser, note):
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/notes/"}
    response = browser.get("/notes/?q=mil&typing=1", headers=headers)
    assert "<mark>milk</mark>" in page_of(response)
    assert "found by prefix" in page_of(response)
    assert response["HX-Replace-Url"] == "/notes/?q=mil"


def test_search_escapes_what_it_marks(browser, user):
    note_create(
        owner=user,
        title="<img src=x onerror=alert(1)> quarterly",
        content="quarterly <script>alert(1)</script> &lt;img&gt; <mark>own</mark>",
    )
    part = page_of(browser.get("/notes/?q=quarterly", headers={"HX-Request": "true"}))
    assert "<mark>quarterly</mark>" in part
    assert "&lt;script&gt;" in part
    assert "&amp;lt;img&amp;gt;" in part
    assert "<script" not in part
    assert "<img" not in part
    assert "<mark>own" not in part


@pytest.mark.parametrize(
    "query", ["folder=a%5Cb", "tag=" + "x" * 300, "page=-3", "page=9999", "q=%22"]
)
def test_list_never_fails_on_odd_links(browser, note, query):
    page_of(browser.get(f"/notes/?{query}"))


@pytest.mark.parametrize("query", ["page=2", "page=999", "q=milk&page=2", "q=milk&page=99999"])
def test_page_past_the_end_says_so_and_leads_back(browser, note, query):
    page = page_of(browser.get(f"/notes/?{query}"))
    assert "The list ends before page" in page
    first = "?q=milk" if "q=" in query else ""
    assert f'<a href="/notes/{first}">Show the first page</a>' in page
    assert "No notes yet." not in page
    assert "offset" not in page
    assert "No note has these words." in page_of(browser.get("/notes/?q=zebra&page=2"))


def test_last_page_that_there_may_be_leads_no_further(browser, user, monkeypatch):
    monkeypatch.setattr(panes, "MAX_PAGE", 2)
    monkeypatch.setattr(panes, "PAGE_SIZE", 1)
    for title in "abc":
        note_create(owner=user, title=title, content="milk")
    assert "?page=2" in page_of(browser.get("/notes/"))
    for query in ("page=2", "page=3"):
        page = page_of(browser.get(f"/notes/?{query}"))
        assert "Older notes" not in page
        assert "No more are listed." in page
    monkeypatch.setattr(search, "MAX_OFFSET", 0)
    assert "No more are listed." in page_of(browser.get("/notes/?q=milk"))


def test_note_without_anything_to_see_in_its_title_has_a_name(browser, user):
    blank = note_create(owner=user, title=" \u200b ", content="x", tags=["#x", "y"])
    for path in ("/notes/", url("note", blank), url("history", blank)):
        assert "Untitled" in page_of(browser.get(path))
    for path in ("/notes/", url("note", blank)):
        assert ">#x<" in page_of(browser.get(path))
        assert ">#y<" in page_of(browser.get(path))
        assert "##x" not in page_of(browser.get(path))


def test_note_is_rendered_and_escaped_and_links_back_to_its_conversation(browser, user, note):
    page = page_of(browser.get(url("note", note)))
    assert "<p>milk &amp; <em>eggs</em></p>" in page
    assert "From a conversation" not in page


def test_note_is_created_and_its_line_breaks_are_the_persons(browser, user):
    data = {"title": "Plan", "folder": "work//a", "tags": "One, two,,one", "content": "a\r\nb "}
    response = browser.post("/notes/new/", data)
    (note,) = Note.objects.filter(owner=user)
    assert response["Location"] == url("note", note)
    assert (note.title, note.content) == ("Plan", "a\nb ")
    assert (note.folder, note.tags) == ("/work/a/", ["One", "two"])


def test_form_shows_what_the_service_refused_beside_its_field_and_keeps_the_text(browser):
    data = {"title": "x", "folder": "a/../b", "content": "precious"}
    response = browser.post("/notes/new/", data)
    assert response.status_code == 400
    page = response.content.decode()
    assert "A folder cannot be called" in page
    assert "precious" in page
    assert not Note.objects.exists()


def test_null_character_is_an_error_of_its_field(browser):
    response = browser.post("/notes/new/", {"title": "a\0b", "content": "x"})
    assert response.status_code == 400
    assert not Note.objects.exists()


def test_edit_changes_the_version_one_began_with(browser, note):
    assert 'name="version" value="1"' in page_of(browser.get(url("edit", note)))
    data = {"title": "Food", "folder": "/", "tags": "", "content": "bread", "version": 1}
    assert browser.post(url("edit", note), data).status_code == 302
    note.refresh_from_db()
    assert (note.title, note.content, note.version) == ("Food", "bread", 2)


def test_conflict_shows_both_texts_and_loses_neither(browser, user, note):
    note_update(owner=user, note_id=note.id, content="theirs", expected_version=1)
    data = {"title": "Groceries", "folder": "/", "tags": "", "content": "mine", "version": 1}
    response = browser.post(url("edit", note), data)
    page = response.content.decode()
    assert response.status_code == 409
    assert ">theirs</textarea>" in page
    assert re.search(r">\s*mine</textarea>", page)
    assert 'name="version" value="2"' in page
    note.refresh_from_db()
    assert note.content == "theirs"
    assert 'name="over" value="1"' in page
    assert browser.post(url("edit", note), data | {"version": 2, "over": 1}).status_code == 302
    note.refresh_from_db()
    assert note.content == "mine"


def test_what_is_saved_over_stays_in_the_history(browser, note):
    data = {"title": "Groceries", "folder": "/", "tags": "", "content": "theirs", "version": 1}
    assert browser.post(url("edit", note), data).status_code == 302
    mine = data | {"content": "mine", "version": 2, "over": 1}
    assert browser.post(url("edit", note), mine).status_code == 302
    contents = list(NoteRevision.objects.order_by("version").values_list("content", flat=True))
    assert contents == ["milk & *eggs*", "theirs", None]


def test_edit_without_a_version_is_a_conflict_and_changes_nothing(browser, note):
    response = browser.post(url("edit", note), {"title": "x", "folder": "/", "content": "x"})
    assert response.status_code == 409
    note.refresh_from_db()
    assert note.title == "Groceries"


def sent_by(page: str) -> dict[str, str]:
    """What a browser sends of a form that nobody changed."""
    found = re.findall(r'<input type="(?:text|hidden)" name="(\w+)"(?: value="([^"]*)")?', page)
    fields = {name: re.sub(r"[\r\n]", "", unescape(value)) for name, value in found}
    (text,) = re.findall(r'<textarea name="content"[^>]*>\r?\n(.*?)</textarea>', page, re.DOTALL)
    fields["content"] = re.sub(r"\r\n?|\n", "\r\n", unescape(text))
    chosen = re.findall(r'<option value="(\w*)" selected>', page)
    return fields | {"language": chosen[0] if chosen else ""}


def test_field_that_was_not_changed_is_left_as_it_is(browser, user):
    note = note_create(
        owner=user,
        title=" line\nbreak ",
        content="a\r\nb\rc\n",
        tags=["a, b"],
        language="german",
    )
    fields = sent_by(page_of(browser.get(url("edit", note))))
    assert fields["language"] == "german"
    assert browser.post(url("edit", note), fields).status_code == 302
    note.refresh_from_db()
    assert note.version == 1
    browser.post(url("edit", note), fields | {"title": "T"})
    note.refresh_from_db()
    assert (note.title, note.content) == ("T", "a\r\nb\rc\n")
    assert (note.tags, note.language, note.version) == (["a, b"], "german", 2)
    changed = {"content": fields["content"] + "d\r\n", "language": "", "version": 2}
    browser.post(url("edit", note), fields | {"title": "T"} | changed)
    note.refresh_from_db()
    assert (note.content, note.language) == ("a\r\nb\rc\nd\r\n", "")


def test_language_is_chosen_for_a_new_note_and_an_unknown_one_is_refused(browser, user):
    assert '<option value="german">German</option>' in page_of(browser.get("/notes/new/"))
    assert browser.post("/notes/new/", {"title": "T", "language": "klingon"}).status_code == 400
    browser.post("/notes/new/", {"title": "T", "language": "german"})
    assert Note.objects.get(owner=user).language == "german"


@pytest.fixture
def long_note(user):
    text = "".join(f"Paragraph {number} with some words\r\n\r\n" for number in range(12_000))
    return note_create(owner=user, title="Long", content=text)


def test_long_note_is_shown_in_parts(browser, long_note):
    first = page_of(browser.get(url("note", long_note)))
    assert "Shown: part 1 of 4." in first
    assert "<p>Paragraph 0 with" in first
    assert "Paragraph 11999 with" not in first
    assert 'href="?part=2" rel="next"' in first
    last = page_of(browser.get(f"{url('note', long_note)}?part=4&q=words"))
    assert "<p>Paragraph 11999 with" in last
    assert "?q=words&amp;part=3" in last
    assert 'rel="next"' not in last
    assert f'href="{url("edit", long_note)}?q=words&amp;part=4"' in last


def test_part_of_a_long_note_is_edited_and_the_rest_is_left_alone(browser, long_note):
    edit, before = f"{url('edit', long_note)}?part=2", long_note.content
    fields = sent_by(page_of(browser.get(edit)))
    start, end = int(fields["start"]), int(fields["end"])
    assert fields["content"] == before[start:end]
    assert len(fields["content"]) < 140_000
    saved = browser.post(
        edit, fields | {"content": "new\r\n"}, headers={"Accept": "application/json"}
    )
    assert saved.json() == {"version": 2, "end": start + 5}
    long_note.refresh_from_db()
    assert long_note.content == f"{before[:start]}new\r\n{before[end:]}"
    again = fields | {"version": "2", "end": str(start + 5), "content": "newer\r\n"}
    # So short a part has become the end of the one before it.
    shown = browser.post(edit, again)["Location"]
    assert shown == f"{url('note', long_note)}?part=1"
    assert "<p>newer" in page_of(browser.get(shown))
    long_note.refresh_from_db()
    assert long_note.content == f"{before[:start]}newer\r\n{before[end:]}"


def test_part_is_not_saved_over_a_note_that_was_changed(browser, user, long_note):
    edit = f"{url('edit', long_note)}?part=2"
    fields = sent_by(page_of(browser.get(edit))) | {"content": "mine"}
    note_update(owner=user, note_id=long_note.id, content="short", expected_version=1)
    for _ in range(2):
        response = browser.post(edit, fields)
        page = response.content.decode()
        assert response.status_code == 409
        assert "open the note as it is now" in page
        fields = sent_by(page)
        assert fields["content"] == "mine"
    long_note.refresh_from_db()
    assert long_note.content == "short"


def test_saving_in_place_answers_json(browser, note):
    json = {"Accept": "application/json"}
    data = {"title": "T", "folder": "/", "tags": "", "content": "1", "version": 1}
    assert browser.post(url("edit", note), data, headers=json).json() == {"version": 2, "end": None}
    again = browser.post(url("edit", note), data, headers=json)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "note_version_conflict")
    bad = browser.post(url("edit", note), data | {"folder": "..", "version": 2}, headers=json)
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "invalid")


def test_form_names_all_that_is_wrong_at_once(browser):
    data = {"title": "x" * 501, "folder": "..", "tags": "x" * 101, "language": "klingon"}
    page = browser.post("/notes/new/", data)
    assert page.status_code == 400
    assert page.content.decode().count('class="errorlist"') == 4


def test_delete_takes_the_note_off_every_list(browser, note):
    assert browser.get(url("delete", note)).status_code == 405
    assert browser.post(url("delete", note)).status_code == 302
    assert "No notes yet." in page_of(browser.get("/notes/"))
    for name in ("note", "edit"):
        page = page_of(browser.get(url(name, note)))
        assert "“Groceries” is in the bin" in page
        assert "It was deleted on" in page
        assert "milk" not in page
        assert url("restore", note) in page
        assert 'href="/notes/bin/">Open the bin' in page


def test_deleted_note_is_missing_to_everybody_else(browser, client_of, other_user, note):
    browser.post(url("delete", note))
    missing = Note(id=uuid4())
    stranger, nobody = client_of(other_user), client_of()
    for name in ("note", "edit", "history"):
        hers, none = stranger.get(url(name, note)), stranger.get(url(name, missing))
        assert (hers.status_code, none.status_code) == (404, 404)
        assert "in the bin" not in hers.content.decode()
        assert nobody.get(url(name, note)).status_code == 302
    for name in ("edit", "vouch", "delete", "restore"):
        assert stranger.post(url(name, note), {"content": "x"}).status_code == 404
    note.refresh_from_db()
    assert note.deleted is not None


def test_text_for_a_note_that_was_deleted_meanwhile_is_not_lost(browser, note):
    browser.post(url("delete", note))
    data = {"title": "T", "folder": "/", "tags": "", "content": "mine <b>", "version": 1}
    response = browser.post(url("edit", note), data)
    assert response.status_code == 409
    page = response.content.decode()
    assert "What you wrote is not saved" in page
    assert "mine &lt;b&gt;</textarea>" in page
    asked = browser.post(url("edit", note), data, headers={"Accept": "application/json"})
    assert (asked.status_code, asked.json()["error"]["code"]) == (404, "not_found")
    assert "in the bin" in asked.json()["error"]["message"]
    note.refresh_from_db()
    assert note.content == "milk & *eggs*"


@pytest.mark.parametrize("name", ["vouch", "delete", "restore"])
def test_change_that_takes_too_long_is_told(browser, note, monkeypatch, name):
    def late(**_options):
        raise NoteSaveTimeout

    for service in ("note_update", "note_delete", "note_restore"):
        monkeypatch.setattr(services, service, late)
    response = browser.post(url(name, note))
    assert response["Location"] == url("note", note)
    assert "Saving took too long" in page_of(browser.get(response["Location"]))


@pytest.mark.parametrize("name", ["vouch", "delete"])
def test_what_is_done_to_a_note_in_the_bin_leads_to_where_it_is(browser, note, name):
    browser.post(url("delete", note))
    assert browser.post(url(name, note))["Location"] == url("note", note)


def test_links_to_pages_may_carry_what_others_add(browser, note):
    for address in ("/notes/", url("note", note), "/notes/bin/", "/"):
        assert browser.get(f"{address}?utm_source=mail", follow=True).status_code == 200


def test_note_is_restored_from_its_own_page(browser, note):
    browser.post(url("delete", note))
    response = browser.post(url("restore", note), follow=True)
    assert "is restored" in response.content.decode()
    assert "is in the bin" not in browser.get(url("note", note)).content.decode()


def test_deleted_note_is_taken_back_with_undo(browser, note):
    page = browser.post(url("delete", note), follow=True).content.decode()
    assert f'action="{url("restore", note)}"' in page
    assert browser.post(url("restore", note))["Location"] == url("note", note)
    assert "Groceries" in page_of(browser.get(url("note", note)))


def test_preview_renders_and_stores_nothing(browser):
    response = browser.post("/notes/preview/", {"content": "**a** <script>x</script>"})
    assert page_of(response) == "<p><strong>a</strong> &lt;script&gt;x&lt;/script&gt;</p>\n"


def test_preview_of_a_very_long_text_is_refused_in_words(browser):
    response = browser.post("/notes/preview/", {"content": "x" * (256 * 1024 + 1)})
    assert "too long" in page_of(response)


def test_a_note_of_5_mebibytes_is_stored_and_shown_in_parts(browser, user):
    content = "# line & more\n" * (5 * 1024 * 1024 // 14)
    note_url = browser.post("/notes/new/", {"title": "Big", "content": content})["Location"]
    assert Note.objects.get(owner=user).content == content
    for path in (note_url, f"{note_url}edit/"):
        page = page_of(browser.get(path))
        assert re.search(r"part 1 of 4\d\.", page)
        assert len(page) < 1024 * 1024
    too_long = browser.post("/notes/new/", {"title": "Bigger", "content": content + content})
    assert too_long.status_code == 400
    assert "at most" in too_long.content.decode()
    assert Note.objects.count() == 1


def test_pages_are_stored_nowhere(browser, note):
    for path in ("/notes/", url("note", note), url("edit", note)):
        assert "no-store" in browser.get(path)["Cache-Control"]


@pytest.mark.parametrize("name", ["note", "edit", "delete", "restore"])
def test_a_strangers_note_is_a_missing_one(client_of, other_user, note, name):
    stranger = client_of(other_user)
    data = {"title": "stolen", "content": "x", "folder": "/", "version": 1}
    assert stranger.get(url(name, note)).status_code in (404, 405)
    assert stranger.post(url(name, note), data).status_code in (404, 405)
    assert 'class="entry"' not in page_of(stranger.get("/notes/"))
    assert 'class="entry"' not in page_of(stranger.get("/notes/?q=milk"))
    note.refresh_from_db()
    assert (note.title, note.deleted) == ("Groceries", None)


@pytest.mark.parametrize("name", ["note", "edit", "delete", "restore"])
def test_anonymous_visitors_are_asked_to_log_in(client_of, note, name):
    for response in (client_of().get(url(name, note)), client_of().post(url(name, note))):
        assert response.status_code == 302
        assert response["Location"].startswith("/login/")


@pytest.mark.parametrize("path", ["/notes/new/", "/notes/preview/"])
def test_posts_need_the_csrf_token(client_of, user, path):
    client = client_of(user, enforce_csrf_checks=True)
    assert client.post(path, {"title": "x", "content": "x"}).status_code == 403
    assert not Note.objects.exists()
