"""Cards in a browser: deciding, a second tab, a late click, a new message instead of a decision."""

import pytest
from playwright.sync_api import Page, Route, expect

from chat.models import Approval
from chat.testing import ScriptedProvider, calls, says
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
    expect(page.locator("#approvals-badge")).to_have_text("1")
    expect(second.locator("#approvals-badge")).to_have_text("1")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".approval.approved .word")).to_have_text("Approved by ada")
    expect(second.locator("#approvals-badge")).to_be_hidden()
    finished(page)
    expect(second.locator(".approval.approved .word")).to_have_text("Approved by ada")
    finished(second)
    expect(page.locator(".call.done .tool")).to_have_text(["note_create", "note_search"])
    assert Note.objects.filter(owner=user, title="Groceries").count() == 1
    live = page.locator("#transcript").inner_text()
    page.reload()
    assert page.locator("#transcript").inner_text() == live


#: The answer to a decision comes after the stream has told what came of it.
LATE = """
const send = window.fetch;
window.fetch = async (...asked) => {
  const answer = await send(...asked);
  if (asked[1]?.method === "POST" && String(asked[0]).includes("/approvals/"))
    while (!document.querySelector(".call.done")) await new Promise(requestAnimationFrame);
  return answer;
};
"""


def test_late_answer_to_a_decision_shows_nothing_that_is_over(page):
    page.add_init_script(LATE)
    page.goto("/")
    send(page, STORY)
    asked(page)
    page.get_by_role("button", name="Approve", exact=True).click()
    finished(page)
    expect(page.locator(".call .tool")).to_have_count(2)
    live = page.locator("#transcript").inner_text()
    page.reload()
    assert page.locator("#transcript").inner_text() == live


def test_escape_takes_no_question_back(page, user):
    page.goto("/")
    send(page, STORY)
    asked(page)
    page.get_by_label("Reason").fill("not")
    page.keyboard.press("Escape")
    page.locator(".approval.pending").focus()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".approval.approved .word")).to_have_text("Approved by ada")
    finished(page)
    assert Note.objects.filter(owner=user, title="Groceries").count() == 1


def test_card_that_has_just_appeared_takes_no_word_and_says_so(page):
    page.goto("/")
    send(page, STORY)
    asked(page)
    card = page.locator(".approval.pending")
    card.focus()
    card.evaluate("card => card.classList.remove('calm')")
    for key in ("a", "d"):
        page.keyboard.press(key)
        expect(page.locator("#toasts")).to_contain_text("nothing was decided")
        expect(card).to_be_focused()
    assert Approval.objects.get().decision == ""
    card.evaluate("card => card.classList.add('calm')")
    page.keyboard.press("a")
    expect(page.locator(".approval.approved .word")).to_have_text("Approved by ada")
    expect(page.get_by_text("nothing was decided")).to_have_count(0)
    finished(page)


def test_person_denies_with_a_reason_in_the_inbox(page, user):
    page.goto("/")
    send(page, STORY)
    asked(page)
    inbox = page.context.new_page()
    inbox.goto("/approvals/")
    expect(inbox.locator("#approvals-badge")).to_have_text("1")
    expect(inbox.locator(".approval.calm")).to_be_visible()
    inbox.get_by_label("Reason").fill("not now")
    inbox.get_by_role("button", name="Deny", exact=True).click()
    expect(inbox.locator(".approval .word")).to_have_text("Denied by ada: not now")
    expect(inbox.locator("#approvals-badge")).to_be_hidden()
    expect(page.locator(".approval .word")).to_have_text("Denied by ada: not now")
    finished(page)
    expect(page.locator(".ended")).to_contain_text("a tool call was denied")
    assert Note.objects.count() == 0


def test_inbox_shows_what_is_asked_and_decided_elsewhere(page, user, three):
    inbox = page.context.new_page()
    inbox.goto("/approvals/")
    expect(inbox.get_by_text("Nothing waits for your word.")).to_be_visible()
    three_asked(page)
    expect(inbox.locator("#approvals-badge")).to_have_text("3")
    expect(inbox.locator(".approval.pending")).to_have_count(3)
    inbox.locator(".approval .input").nth(1).fill("not this")
    page.locator(".approval").first.get_by_role("button", name="Approve", exact=True).click()
    expect(inbox.locator(".approval.pending")).to_have_count(2)
    expect(inbox.locator(".approval .input").first).to_have_value("not this")
    expect(inbox.locator("#approvals-badge")).to_have_text("2")
    page.get_by_role("button", name="Stop").click()
    finished(page)
    expect(inbox.locator(".approval")).to_have_count(0)
    expect(inbox.get_by_text("Nothing waits for your word.")).to_be_visible()
    expect(inbox.locator("#approvals-badge")).to_be_hidden()


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


@pytest.fixture
def three(answer_with):
    """The assistant asks about three notes at once, the last one long."""
    made = [("note_create", {"title": title, "content": "milk"}) for title in ("One", "Two")]
    made += [("note_create", {"title": "Three", "content": "line\n" * 100})]
    answer_with(ScriptedProvider(calls(*made), says("Done.")))


def three_asked(page: Page) -> None:
    page.goto("/")
    send(page, "Make three notes")
    expect(page.locator(".approval.calm")).to_have_count(3)


def last_diff(page: Page, what: str):
    """Found and asked in one go: a card that is placed anew meanwhile leaves the old one behind."""
    return page.evaluate(f"[...document.querySelectorAll('.diff')].at(-1).{what}")


def read(page: Page) -> None:
    last_diff(page, "scrollTo(0, 1e6)")
    expect(page.locator(".diff[data-seen]")).to_have_count(1)


def refused(watch, status="400 (Bad Request)") -> None:
    """The browser reports every such answer."""
    assert [fault for fault in watch.faults if status in fault] == watch.faults
    watch.faults.clear()


def titles() -> set[str]:
    return set(Note.objects.values_list("title", flat=True))


def test_calls_asked_at_once_are_one_card_and_approved_in_one_go(page, three):
    three_asked(page)
    expect(page.locator("[data-card]")).to_have_count(1)
    page.get_by_role("button", name="Approve all 3").click()
    expect(page.locator(".toast")).to_contain_text("Scroll to the end")
    read(page)
    page.get_by_role("button", name="Approve all 3").click()
    expect(page.locator(".word")).to_have_text(["Approved by ada"] * 3)
    finished(page)
    assert titles() == {"One", "Two", "Three"}
    live = page.locator("#transcript").inner_text()
    page.reload()
    assert page.locator("#transcript").inner_text() == live


def test_keys_decide_on_the_card_that_has_the_focus_and_nowhere_else(page, three):
    three_asked(page)
    page.get_by_label("Message").press_sequentially("add")
    expect(page.get_by_label("Message")).to_have_value("add")
    page.locator(".approval .input").first.press_sequentially("add\n")
    page.locator("#transcript").evaluate("() => document.activeElement.blur()")
    page.keyboard.press("a")
    expect(page.locator(".approval").first).to_be_focused()
    expect(page.locator(".approval.pending")).to_have_count(3)
    expect(page.locator(".approval:focus kbd").first).to_be_visible()
    page.keyboard.press("a")
    expect(page.locator(".word")).to_have_text(["Approved by ada"])
    expect(page.locator(".approval.pending").first).to_be_focused()
    expect(page.locator(".approval.calm")).to_have_count(2)
    page.keyboard.press("d")
    expect(page.locator(".word")).to_have_count(3)
    finished(page)
    assert titles() == {"One"}


def test_arguments_are_changed_on_the_card(page, three, watch):
    three_asked(page)
    second = page.locator(".approval").nth(1)
    second.locator(".edit summary").click()
    second.get_by_label("title", exact=True).fill("x" * 501)
    page.locator(".approval .input").first.fill("not this")
    expect(second.locator(".change .errorlist")).to_contain_text("title: At most 500 characters")
    expect(page.locator(".approval.calm")).to_have_count(3)
    second.get_by_role("button", name="Approve", exact=True).click()
    expect(second.locator(".edit .errorlist")).to_contain_text("At most 500 characters")
    refused(watch)
    expect(second.get_by_label("title", exact=True)).to_have_value("x" * 501)
    expect(page.locator(".approval .input").first).to_have_value("not this")
    expect(page.locator(".toast")).to_have_count(0)
    expect(page.locator(".approval.calm")).to_have_count(3)
    second.get_by_label("title", exact=True).fill("Second")
    expect(second.locator(".change")).to_contain_text("Make the note “Second”")
    expect(page.locator(".approval.calm")).to_have_count(3)
    second.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator(".word")).to_have_text(["Approved by ada with a change of title"])
    expect(page.locator(".approval .input").first).to_have_value("not this")
    first = page.locator(".approval.pending").first
    expect(page.locator(".approval.calm")).to_have_count(2)
    first.get_by_role("button", name="Deny and go on").click()
    read(page)
    expect(page.locator(".approval.calm")).to_have_count(1)
    page.get_by_role("button", name="Approve", exact=True).click()
    finished(page)
    expect(page.locator(".word").first).to_have_text("Denied by ada: not this")
    assert titles() == {"Second", "Three"}


def test_diff_stays_where_it_was_scrolled_to_when_its_card_is_placed_anew(page, three):
    three_asked(page)
    last_diff(page, "scrollTo(0, 40)")
    page.get_by_role("button", name="Deny and go on").first.click()
    expect(page.locator(".word")).to_have_count(1)
    assert last_diff(page, "scrollTop") == 40
    expect(page.locator(".diff[data-seen]")).to_have_count(0)


def test_change_is_shown_before_it_is_approved(page, three, user):
    three_asked(page)
    first = page.locator(".approval").first
    first.locator(".edit summary").click()
    expect(first.locator(".outdated")).to_be_hidden()
    asked_for: list[Route] = []

    def hold_first(route: Route) -> None:
        asked_for.append(route)
        if len(asked_for) > 1:
            route.continue_()

    page.route("**/preview/", hold_first)
    box = first.get_by_label("content", exact=True)
    with page.expect_request("**/preview/"):
        box.fill("oat milk")
        expect(first.locator(".outdated")).to_be_visible()
    # One request at a time; what is typed meanwhile is asked about next, and nothing in between.
    page.clock.install()
    for text in ("oat milk\n" + "more\n" * 30, "oat milk\n" + "line\n" * 60):
        box.fill(text)
        page.clock.run_for(1000)
    assert [route.request.url.rpartition("/approvals/")[2] for route in asked_for] == [
        f"{Approval.objects.order_by('call__position')[0].id}/preview/"
    ]
    expect(first.locator(".change .diff")).to_have_count(0)
    with page.expect_request("**/preview/") as last:
        asked_for[0].continue_()
    assert "%0Aline" in (last.value.post_data or "")
    expect(first.locator(".change .added").last).to_have_text("+line")
    expect(box).to_be_focused()
    page.clock.run_for(1000)
    expect(page.locator(".approval.calm")).to_have_count(3)
    approve = first.get_by_role("button", name="Approve", exact=True)
    approve.click()
    expect(page.locator(".toast")).to_contain_text("Scroll to the end")
    first.locator(".change .diff").evaluate("diff => diff.scrollTo(0, diff.scrollHeight)")
    expect(first.locator(".change .diff[data-seen]")).to_have_count(1)
    approve.click()
    expect(page.locator(".word")).to_have_text(["Approved by ada with a change of content"])
    assert len(asked_for) == 2


def test_change_that_is_taken_back_leaves_what_was_asked(page, three):
    three_asked(page)
    first = page.locator(".approval").first
    first.locator(".edit summary").click()
    box = first.get_by_label("content", exact=True)
    box.fill("oat milk")
    approve = first.get_by_role("button", name="Approve", exact=True)
    approve.click()
    expect(page.locator(".toast")).to_contain_text("Look first at what it would do")
    expect(first.locator(".change .added")).to_have_text("+oat milk")
    expect(page.locator(".toast")).to_have_count(0)
    box.fill("milk")
    expect(first.locator(".change")).to_be_hidden()
    expect(first.locator(".outdated")).to_be_hidden()
    expect(page.locator(".approval.calm")).to_have_count(3)
    approve.click()
    expect(page.locator(".word")).to_have_text(["Approved by ada"])


def test_cards_work_without_a_script(open_context, client_of, user, page, three, watch):
    three_asked(page)
    page.close()
    plain = open_context(client_of(user), java_script_enabled=False).new_page()
    plain.goto("/approvals/")
    second = plain.locator(".approval").nth(1)
    second.locator(".edit summary").click()
    second.get_by_label("title", exact=True).fill("x" * 501)
    second.get_by_role("button", name="Approve", exact=True).click()
    expect(second.locator(".errorlist")).to_contain_text("At most 500 characters")
    refused(watch)
    second.get_by_label("title", exact=True).fill("Second")
    second.get_by_role("button", name="Show what it would do").click()
    expect(second.locator(".change")).to_contain_text("Make the note “Second”")
    second.get_by_label("title", exact=True).fill("Zwei")
    plain.get_by_role("button", name="Approve all 3").click()
    expect(plain.locator(".toast")).to_contain_text("Look at it, then approve.")
    refused(watch, "409 (Conflict)")
    expect(plain.locator(".change")).to_contain_text("Make the note “Zwei”")
    plain.get_by_role("button", name="Approve", exact=True).click()
    expect(plain.get_by_text("Nothing waits for your word.")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_cards_have_no_fault_that_axe_knows(open_context, client_of, user, scheme, width):
    size = {"width": width, "height": 900}
    page = open_context(client_of(user), color_scheme=scheme, viewport=size).new_page()
    page.goto("/")
    send(page, STORY)
    asked(page)
    for summary in page.locator(".approval summary").all():
        summary.click()
    assert_accessible(page)
    page.get_by_label("content", exact=True).fill("oat milk")
    assert_accessible(page)
    expect(page.locator(".change .diff")).to_be_visible()
    assert_accessible(page)
    # The demo only makes notes: a diff that takes away, too. The inbox is read from rows.
    preview = Approval.objects.get().preview
    Approval.objects.update(preview=preview | {"diff": "@@ -1 +1 @@\n-milk\n+oat milk\n bread"})
    page.goto("/approvals/")
    expect(page.locator(".approval .diff .removed")).to_have_text("-milk")
    assert_accessible(page)
    expect(page.locator(".approval.calm")).to_be_visible()
    page.get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator(".approval .word")).to_be_visible()
    assert_accessible(page)
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide == 0
