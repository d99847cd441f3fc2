"""Undo in a browser: one step, then all of an answer; a second tab, a reload, no script."""

from playwright.sync_api import Page, expect

from notes.models import Note
from tests.browser.test_chat import finished, send

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
