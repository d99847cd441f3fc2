"""The chat page in a browser, with the demo provider: the story, stop, reload, a second tab."""

import re

from playwright.sync_api import Page, expect

from chat.types import Completion, Fault
from notes.models import Note
from tests.browser.conftest import Paced

STORY = "make a note called Groceries with milk and eggs, then find it"


def send(page: Page, text: str) -> None:
    """Write, press Enter, and wait until the message is stored and shown."""
    box = page.get_by_label("Message")
    box.fill(text)
    box.press("Enter")
    expect(page.locator(".question").last).to_have_text(text)
    expect(page.get_by_label("Message")).to_have_value("")


def finished(page: Page) -> None:
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.locator("[data-stream]")).to_have_count(0)


def test_person_logs_in_asks_for_a_note_watches_the_tools_and_opens_it(open_context, user):
    page = open_context().new_page()
    page.goto("/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="List my notes")).to_be_visible()
    send(page, STORY)
    expect(page).to_have_url(re.compile(r"/chat/[0-9a-f-]{36}/$"))
    expect(page.locator(".question")).to_have_text(STORY)
    expect(page.locator(".call.done .tool")).to_have_text(["note_create", "note_search"])
    expect(page.locator(".call.done").last).to_contain_text("Groceries")
    expect(page.locator(".answer .prose").last).not_to_be_empty()
    finished(page)
    live = page.locator("#transcript").inner_text()
    page.reload()
    assert page.locator("#transcript").inner_text() == live
    page.locator(".call .chip", has_text="Groceries").first.click()
    expect(page.locator(".note-head h1")).to_have_text("Groceries")
    expect(page.locator(".note .prose")).to_contain_text("milk")
    expect(page.locator(".note .prose")).to_contain_text("eggs")
    page.get_by_role("link", name="From a conversation").click()
    expect(page.locator(".question")).to_have_text(STORY)
    assert Note.objects.filter(owner=user, title="Groceries").count() == 1


def test_answer_is_stopped_and_keeps_its_words(page, answer_with):
    answer_with(Paced("Once ", "upon a time"))
    page.goto("/")
    send(page, "Tell me")
    expect(page.locator(".answer .prose")).to_have_text("Once")
    page.get_by_role("button", name="Stop").click()
    finished(page)
    expect(page.locator(".ended")).to_contain_text("You stopped this answer.")
    expect(page.locator(".answer .prose")).to_have_text("Once")
    page.reload()
    expect(page.locator(".ended")).to_contain_text("You stopped this answer.")
    expect(page.locator(".answer .prose")).to_have_text("Once")


def test_escape_that_closes_a_menu_stops_no_answer(page, answer_with):
    provider = Paced("Once ", "upon a time")
    answer_with(provider)
    page.goto("/")
    send(page, "Tell me")
    expect(page.locator(".answer .prose")).to_have_text("Once")
    page.get_by_role("button", name="Rename, archive or delete").click()
    expect(page.locator("#conversation-menu")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#conversation-menu")).to_be_hidden()
    provider.go_on()
    finished(page)
    expect(page.locator(".answer .prose")).to_have_text("Once upon a time")


def test_escape_stops_also_after_a_reload(page, answer_with):
    answer_with(Paced("Once ", "upon a time"))
    page.goto("/")
    send(page, "Tell me")
    expect(page.locator(".answer .prose")).to_have_text("Once")
    page.reload()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".ended")).to_contain_text("You stopped this answer.")
    answer_with(Paced("And so on."))
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".answer .prose")).to_have_text(["Once", "And so on."])
    finished(page)
    expect(page.get_by_role("button", name="Continue")).to_be_hidden()


def test_reload_and_second_tab_in_mid_stream_have_nothing_twice_and_miss_nothing(page, answer_with):
    paced = Paced(
        "# Title\n\nfirst ", "second\n\n- one\n", "- two 🎉\n\n```py\nx = 1\n```\n", "end"
    )
    answer_with(paced)
    page.goto("/")
    send(page, "Tell me")
    prose = page.locator(".answer .prose")
    expect(prose).to_contain_text("first")
    paced.go_on()
    expect(prose).to_contain_text("one")
    page.reload()
    expect(prose).to_contain_text("first second")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".answer .prose")).to_contain_text("first second")
    paced.go_on()
    expect(prose).to_contain_text("two 🎉")
    paced.go_on()
    finished(page)
    finished(other)
    shown = prose.inner_html()
    assert other.locator(".answer .prose").inner_html() == shown
    page.reload()
    assert prose.inner_html() == shown
    assert prose.locator("h1").count() == 1
    assert prose.locator("li").all_inner_texts() == ["one", "two 🎉"]
    assert page.locator(".question").count() == 1


def test_another_tab_of_the_conversation_follows_what_is_sent_in_this_one(page, answer_with):
    answer_with(Paced("Once"))
    page.goto("/")
    send(page, "Tell me")
    finished(page)
    other = page.context.new_page()
    other.goto(page.url)
    paced = Paced("Twice ", "indeed")
    answer_with(paced)
    send(page, "Again")
    expect(other.locator(".question")).to_have_text(["Tell me", "Again"])
    paced.go_on()
    expect(other.locator(".answer .prose").last).to_have_text("Twice indeed")
    finished(other)


def test_view_follows_the_end_only_while_the_person_is_there(page, answer_with):
    lines = "".join(f"line {n}\n\n" for n in range(60))
    paced = Paced(lines, "more\n\n" * 20, "the end")
    answer_with(paced)
    page.goto("/")
    send(page, "Tell me")
    top = "document.getElementById('scroller').scrollTop"
    expect(page.locator(".prose")).to_contain_text("line 59")
    assert page.evaluate(top) > 500
    page.locator("#scroller").evaluate("element => element.scrollTo(0, 100)")
    # The page learns of the scrolling before the next frame but one.
    page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    paced.go_on()
    expect(page.get_by_role("button", name="New text")).to_be_visible()
    assert page.evaluate(top) == 100
    page.get_by_role("button", name="New text").click()
    expect(page.get_by_role("button", name="New text")).to_be_hidden()
    paced.go_on()
    expect(page.locator(".prose")).to_contain_text("the end")
    left = "e => e.scrollHeight - e.scrollTop - e.clientHeight"
    assert page.locator("#scroller").evaluate(left) < 4


def test_enter_of_an_input_method_and_shift_enter_do_not_send(page):
    page.goto("/")
    box = page.get_by_label("Message")
    box.fill("にほん")
    for options in ("isComposing: true", "keyCode: 229"):
        box.evaluate(
            "(box, options) => box.dispatchEvent(new KeyboardEvent('keydown', options))",
            {"key": "Enter", "bubbles": True, "cancelable": True}
            | ({"isComposing": True} if "isComposing" in options else {"keyCode": 229}),
        )
    box.press("Shift+Enter")
    box.press_sequentially("a")
    expect(box).to_have_value("にほん\na")
    assert page.url.endswith("/")


def test_draft_is_kept_for_its_conversation(page, answer_with):
    answer_with(Paced("Once"))
    page.goto("/")
    page.get_by_label("Message").fill("for later")
    page.reload()
    expect(page.get_by_label("Message")).to_have_value("for later")
    send(page, "Tell me")
    finished(page)
    page.get_by_label("Message").fill("here only")
    page.goto("/")
    expect(page.get_by_label("Message")).to_have_value("")
    page.go_back()
    expect(page.get_by_label("Message")).to_have_value("here only")


def test_message_is_sent_after_a_new_log_in_in_another_tab(page, answer_with, watch):
    watch.forgiven = "401 (Unauthorized)"  # of the page that is logged out
    answer_with(Paced("Once"))
    page.goto("/")
    send(page, "Tell me")
    finished(page)
    other = page.context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Log out").click()
    other.goto("/login/")
    other.get_by_label("Username").fill("ada")
    other.get_by_label("Password").fill("correct horse")
    other.get_by_role("button", name="Log in").click()
    expect(other.get_by_text("What shall we do?")).to_be_visible()
    send(page, "Again")
    finished(page)
    expect(page.locator(".answer")).to_have_count(2)


def test_failed_answer_says_why(page, answer_with):
    class Broken:
        name = "acme"

        async def stream(self, request):
            fault = Fault("quota", "You have no <credit> left.", status=402)
            yield (Completion(finish_reason="error", fault=fault),)

    answer_with(Broken())
    page.goto("/")
    send(page, "Tell me")
    expect(page.get_by_role("alert")).to_contain_text("You have no <credit> left.")
    finished(page)
    answer_with(Paced("Better"))
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".answer .prose")).to_have_text("Better")
    expect(page.get_by_role("alert")).to_have_count(0)
    finished(page)
    live = page.locator("#transcript").inner_text()
    page.reload()
    assert page.locator("#transcript").inner_text() == live


def test_story_works_without_script(open_context, client_of, user):
    page = open_context(client_of(user), java_script_enabled=False).new_page()
    page.goto("/")
    page.get_by_label("Message").fill(STORY)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".call.done .tool")).to_have_text(["note_create", "note_search"])
    expect(page.locator(".answer .prose").last).to_contain_text("Groceries")


def test_page_without_script_shows_what_came_meanwhile(open_context, client_of, user, answer_with):
    paced = Paced("Once ", "upon a time")
    answer_with(paced)
    page = open_context(client_of(user), java_script_enabled=False).new_page()
    page.goto("/")
    page.get_by_label("Message").fill("Tell me")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("Answering…")).to_be_visible()
    paced.go_on()
    expect(page.locator(".answer .prose")).to_have_text("Once upon a time", timeout=15_000)
    expect(page.get_by_text("Answering…")).to_have_count(0)


def test_person_renames_archives_and_deletes_a_conversation(page, answer_with):
    answer_with(Paced("Once"))
    page.goto("/")
    send(page, "Tell me")
    finished(page)
    menu = page.get_by_role("button", name="Rename, archive or delete")
    menu.click()
    page.get_by_label("Title").fill("A story")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.locator(".conversation-head h1")).to_have_text("A story")
    expect(page.locator(".conversations .title")).to_have_text("A story")
    menu.click()
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(page.locator(".conversations .title")).to_have_count(0)
    page.get_by_role("link", name="Archive").click()
    page.locator(".conversations .title").click()
    menu.click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("What shall we do?")).to_be_visible()
    expect(page.get_by_text("Nothing is in the archive.")).to_have_count(0)
