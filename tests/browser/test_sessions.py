"""A session that ends while pages are open: they say so, ask no more, and go on once it is back."""

import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from tests.browser.test_access import assert_accessible
from tests.notes.writing import note_create

OVER = "You are logged out."


@pytest.fixture(autouse=True)
def unauthorized(watch):
    """The browser reports what a page could not know before it asked."""
    watch.forgiven = "401 (Unauthorized)"


def bar(page: Page):
    return page.locator(".logged-out")


def log_in(page: Page) -> None:
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()


def test_page_of_an_expired_session_stops_asking_and_leads_back_after_a_log_in(page, user):
    note = note_create(owner=user, title="Plan")
    page.goto(f"/notes/{note.id}/?q=plan")
    expect(bar(page)).to_have_count(0)
    Session.objects.all().delete()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    # The stream is ended, and the browser's next request for it is refused.
    expect(bar(page)).to_contain_text(OVER, timeout=20_000)
    assert_accessible(page)
    before = len(asked)
    page.clock.install()
    page.clock.run_for(300_000)
    assert len(asked) == before
    bar(page).get_by_role("link", name="Log in").click()
    log_in(page)
    expect(page).to_have_url(re.compile(rf"/notes/{note.id}/\?q=plan$"))
    expect(bar(page)).to_have_count(0)


def test_log_out_in_one_tab_is_said_in_the_others_and_taken_back_with_a_log_in(page, user):
    page.goto("/notes/")
    other = page.context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Log out").click()
    expect(bar(page)).to_contain_text(OVER)
    # What is answered with the page to log in is not put into this one.
    page.get_by_role("searchbox").fill("plan")
    page.get_by_role("searchbox").press("Enter")
    expect(page.locator("#list")).to_be_visible()
    expect(page.get_by_label("Username")).to_have_count(0)
    with page.expect_request("**/api/events/?after=*"):
        log_in(other)
    expect(bar(page)).to_have_count(0)


def test_word_of_a_logged_out_page_is_kept_and_the_page_says_why(page, user):
    page.goto("/")
    Session.objects.all().delete()
    page.get_by_label("Message").fill("Hello")
    page.get_by_label("Message").press("Enter")
    expect(bar(page)).to_contain_text(OVER)
    expect(page.locator(".toast")).to_contain_text("Log in again in another tab")
    expect(page.get_by_label("Message")).to_have_value("Hello")
