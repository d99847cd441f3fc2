"""Undo in a browser: one step, then all of an answer; a second tab, a reload, no script, and what
is undone elsewhere."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from accounts.services import token_create
from chat.models import Run, ToolCall
from chat.testing import ScriptedProvider, calls, says
from notes.models import Note
from notes.services import note_restore
from tests.browser.test_chat import finished, send
from tests.notes.writing import by, note_delete, note_update

TWO = "Make a note called {} with milk and eggs, then find it"


def titles() -> set[str]:
    return set(Note.objects.filter(deleted=None).values_list("title", flat=True))


def undone(page: Page) -> None:
    expect(page.locator(".call .undo")).to_have_text("undone")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)


def test_person_undoes_a_step_and_every_tab_says_so(page):
    page.goto("/")
    send(page, TWO.format("Groceries"))
    finished(page)
    assert titles() == {"Groceries"}
    second = page.context.new_page()
    second.goto(page.url)
    page.get_by_role("button", name="Undo note_create").click()
    undone(page)
    expect(page.locator(".toast")).to_contain_text("Undone.")
    undone(second)
    assert titles() == set()
    live = page.locator("#transcript").inner_text()
    page.reload()
    assert page.locator("#transcript").inner_text() == live
    undone(page)


def test_undo_works_without_a_script(open_context, client_of, user, page):
    page.goto("/")
    send(page, TWO.format("Groceries"))
    finished(page)
    plain = open_context(client_of(user), java_script_enabled=False).new_page()
    plain.goto(page.url)
    plain.get_by_role("button", name="Undo note_create").click()
    undone(plain)
    expect(plain.locator(".toast")).to_contain_text("Undone.")
    assert titles() == set()


@pytest.fixture
def two(answer_with):
    made = (("note_create", {"title": title}) for title in ("One", "Two"))
    answer_with(ScriptedProvider(calls(*made), says("Done.")))


@pytest.fixture
def post(server, user):
    """Ask the API as a program of the person's."""
    _, secret = token_create(owner=user, name="program")

    def send(path, body=None):
        headers = {"Authorization": f"Bearer {secret}"}
        return httpx.post(f"{server.url}{path}", json=body, headers=headers, timeout=30)

    return send


def test_person_undoes_a_step_then_everything(page, two):
    page.goto("/")
    send(page, "Make two notes")
    finished(page)
    assert titles() == {"One", "Two"}
    everything = page.get_by_role("button", name="Undo everything this answer changed")
    everything.click()
    expect(page.locator(".call .undo")).to_have_text(["undone", "undone"])
    expect(everything).to_have_count(0)
    expect(page.locator(".toast")).to_contain_text("Undone in 2 notes.")
    assert titles() == set()
    page.reload()
    expect(page.locator(".call .undo")).to_have_text(["undone", "undone"])


def test_undo_of_one_step_leaves_the_other(page, two):
    page.goto("/")
    send(page, "Make two notes")
    finished(page)
    page.get_by_role("button", name="Undo note_create created “One”").click()
    expect(page.locator(".call .undo").first).to_have_text("undone")
    expect(page.get_by_role("button", name="Undo note_create created “Two”")).to_be_visible()
    expect(page.get_by_role("button", name="Undo everything")).to_have_count(0)
    assert titles() == {"Two"}


def test_undo_over_rest_shows_at_once_on_an_open_page(page, two, post):
    page.goto("/")
    send(page, "Make two notes")
    finished(page)
    call = ToolCall.objects.get(position=1)
    assert post(f"/api/tool-calls/{call.id}/undo/").status_code == 200
    expect(page.locator(".call .undo").nth(1)).to_have_text("undone")
    expect(page.get_by_role("button", name="Undo everything")).to_have_count(0)
    assert post(f"/api/runs/{Run.objects.get().id}/undo/").status_code == 200
    expect(page.locator(".call .undo")).to_have_text(["undone", "undone"])


def test_undo_that_cannot_work_any_more_says_why_on_an_open_page(page, two, user):
    page.goto("/")
    send(page, "Make two notes")
    finished(page)
    one, other = Note.objects.get(title="One"), Note.objects.get(title="Two")
    note_update(owner=user, note_id=one.id, content="mine")
    lines = page.locator(".call .undo")
    expect(lines.first).to_have_text("No undo: you changed it since")
    expect(page.get_by_role("button", name="Undo everything")).to_have_count(0)
    note_delete(owner=user, note_id=other.id)
    expect(lines.nth(1)).to_have_text("No undo: you deleted it since")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    page.reload()
    words = ["No undo: you changed it since", "No undo: you deleted it since"]
    expect(lines).to_have_text(words)
    note_restore(owner=user, author=by(user), note_id=other.id)
    expect(page.get_by_role("button", name="Undo note_create created “Two”")).to_be_visible()
    page.get_by_role("button", name="Undo note_create created “Two”").press("Enter")
    expect(lines.nth(1)).to_have_text("undone")
    expect(lines.nth(1)).to_be_focused()


def test_undo_in_another_browser_shows_after_the_page_was_hidden(
    page, open_context, client_of, user, two
):
    page.goto("/")
    send(page, "Make two notes")
    finished(page)
    hide = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    other = open_context(client_of(user)).new_page()
    other.goto(page.url)
    other.get_by_role("button", name="Undo everything").click()
    expect(other.locator(".call .undo")).to_have_text(["undone", "undone"])
    expect(page.get_by_role("button", name="Undo everything")).to_be_visible()
    page.evaluate(hide, False)
    expect(page.locator(".call .undo")).to_have_text(["undone", "undone"])


def test_what_a_program_sends_is_followed_on_an_open_page(page, two, post, answer_with):
    page.goto("/")
    send(page, "Make two notes")
    finished(page)
    answer_with(ScriptedProvider(says("Well.")))
    conversation = page.locator("#transcript").get_attribute("data-conversation")
    sent = {"content": "How are they?", "stream": False}
    assert post(f"/api/conversations/{conversation}/completions/", sent).status_code == 200
    expect(page.locator(".question")).to_have_text(["Make two notes", "How are they?"])
    expect(page.locator(".answer .prose").last).to_have_text("Well.")
    finished(page)
    assert post("/api/completions/", {"content": "Elsewhere", "stream": False}).status_code == 200
    expect(page.locator(".conversations li")).to_have_count(2)
    expect(page.locator(".conversations [aria-current]")).to_have_text("Make two notes")
    expect(page.locator(".conversations .spinner")).to_have_count(0)
