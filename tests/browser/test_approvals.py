"""Cards in a browser: deciding, a second tab, a late click, a new message instead of a decision."""

import pytest
from playwright.sync_api import Page, expect

from chat.models import Approval
from notes.models import Note
from tests.browser.test_access import assert_accessible
from tests.browser.test_chat import STORY, finished, send


@pytest.fixture(autouse=True)
def careful(settings):
    settings.NOTEWIRE_APPROVAL_MODE = "careful"


def asked(page: Page) -> None:
    expect(page.locator(".approval.pending")).to_be_visible()
    expect(page.locator("[data-awaiting]")).to_be_visible()
    expect(page.locator(".approval.calm")).to_be_visible()


def test_person_approves_and_a_second_tab_follows(page, user):
    page.goto("/")
    send(page, STORY)
    asked(page)
    card = page.locator(".approval.pending")
    expect(card.locator(".diff .added").first).to_contain_text("milk")
    assert Note.objects.count() == 0
    second = page.context.new_page()
    second.goto(page.url)
    asked(second)
    expect(page.locator("#approvals-badge")).to_have_count(0)
    expect(second.locator("#approvals-badge")).to_have_text("1")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".approval.approved .word")).to_have_text("Approved by ada")
    finished(page)
    expect(second.locator(".approval.approved .word")).to_have_text("Approved by ada")
    finished(second)
    expect(page.locator(".call.done .tool")).to_have_text(["note_create", "note_search"])
    assert Note.objects.filter(owner=user, title="Groceries").count() == 1
    live = page.locator("#transcript").inner_text()
    page.reload()
    assert page.locator("#transcript").inner_text() == live


def test_person_denies_with_a_reason_in_the_inbox(page, user):
    page.goto("/")
    send(page, STORY)
    asked(page)
    inbox = page.context.new_page()
    inbox.goto("/approvals/")
    expect(inbox.locator("#approvals-badge")).to_have_text("1")
    expect(inbox.locator(".approval.calm")).to_be_visible()
    inbox.get_by_label("Reason").fill("not now")
    inbox.get_by_role("button", name="Deny").click()
    expect(inbox.locator(".approval .word")).to_have_text("Denied by ada: not now")
    expect(inbox.locator("#approvals-badge")).to_be_hidden()
    expect(page.locator(".approval .word")).to_have_text("Denied by ada: not now")
    finished(page)
    expect(page.locator(".ended")).to_contain_text("a tool call was denied")
    assert Note.objects.count() == 0


def test_new_message_takes_the_place_of_a_decision(page, user):
    page.goto("/")
    send(page, STORY)
    asked(page)
    send(page, "Never mind. What can you do?")
    finished(page)
    expect(page.locator(".approval .word")).to_have_text("No longer awaited")
    expect(page.locator(".run")).to_have_count(2)
    assert Approval.objects.get().decision == "expired"
    assert Note.objects.count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_cards_have_no_fault_that_axe_knows(open_context, client_of, user, scheme, width):
    size = {"width": width, "height": 900}
    page = open_context(client_of(user), color_scheme=scheme, viewport=size).new_page()
    page.goto("/")
    send(page, STORY)
    asked(page)
    page.locator(".approval summary").click()
    assert_accessible(page)
    # The demo only makes notes: a diff that takes away, too. The inbox is read from rows.
    preview = Approval.objects.get().preview
    Approval.objects.update(preview=preview | {"diff": "@@ -1 +1 @@\n-milk\n+oat milk\n bread"})
    page.goto("/approvals/")
    expect(page.locator(".approval .diff .removed")).to_have_text("-milk")
    assert_accessible(page)
    expect(page.locator(".approval.calm")).to_be_visible()
    page.get_by_role("button", name="Deny").click()
    expect(page.locator(".approval .word")).to_be_visible()
    assert_accessible(page)
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide == 0
