"""The notes pages in a browser: find as one types, edit, save in place, a conflict."""

import re

from playwright.sync_api import Route, expect

from notes.selectors import note_get
from tests.notes.writing import note_create, note_update


def test_search_finds_as_one_types_and_the_last_query_wins(page, user):
    note_create(owner=user, title="Groceries", content="milk and eggs")
    note_create(owner=user, title="Holiday", content="trains to the sea")
    page.goto("/notes/")
    page.get_by_role("searchbox").press_sequentially("trains", delay=20)
    expect(page.locator(".entry")).to_have_count(1)
    expect(page.locator(".entry mark").first).to_have_text("trains")
    expect(page).to_have_url(re.compile(r"/notes/\?q=trains$"))
    page.get_by_role("searchbox").fill("")
    expect(page.locator(".entry")).to_have_count(2)


def test_hit_is_opened_at_what_was_found(page, user):
    note_create(
        owner=user, title="Holiday", content="Before.\n\n" * 100 + "By *trains* to the sea."
    )
    page.goto("/notes/")
    page.get_by_role("searchbox").press_sequentially("train")
    expect(page.locator(".entry mark").first).to_have_text("trains")
    page.locator(".entry").click()
    expect(page.locator(".prose mark")).to_have_text("trains")
    expect(page.locator(".prose mark")).to_be_in_viewport()


def test_search_has_one_request_in_flight_and_asks_for_the_last_query_next(page, user):
    note_create(owner=user, title="Holiday", content="trains to the sea")
    page.goto("/notes/")
    asked: list[Route] = []

    def hold_first(route: Route) -> None:
        asked.append(route)
        if len(asked) > 1:
            route.continue_()

    page.route("**/notes/?q=*", hold_first)
    with page.expect_request(lambda request: "q=t&typing=1" in request.url):
        page.get_by_role("searchbox").press_sequentially("t")
    page.get_by_role("searchbox").press_sequentially("rai", delay=300)
    asked[0].continue_()
    expect(page.locator(".entry mark").first).to_have_text("trains")
    expect(page).to_have_url(re.compile(r"/notes/\?q=trai$"))
    assert [route.request.url.rpartition("/")[2] for route in asked] == [
        "?q=t&typing=1",
        "?q=trai&typing=1",
    ]


def test_note_is_written_previewed_saved_in_place_and_deleted(page, user):
    page.goto("/notes/")
    page.get_by_role("link", name="New note").first.click()
    page.get_by_label("Title").fill("Plan")
    page.get_by_label("Text").fill("# Steps\n\n- one")
    expect(page.locator("#preview h1")).to_have_text("Steps")
    page.keyboard.press("Control+s")
    expect(page.locator(".note-head h1")).to_have_text("Plan")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Text").fill("changed")
    expect(page.locator("#editor-state")).to_have_text("Not saved")
    page.keyboard.press("Control+s")
    expect(page.locator("#editor-state")).to_have_text("Saved")
    page.get_by_label("Text").fill("changed again")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".note .prose")).to_have_text("changed again")
    page.get_by_role("button", name="Delete").click()
    page.locator("#confirm-delete").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("is deleted.")).to_be_visible()
    expect(page.locator(".entry")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".note .prose")).to_have_text("changed again")


def test_note_of_5_mebibytes_is_read_and_edited_in_parts(page, user):
    note = note_create(owner=user, title="Long", content="A line of the text.\r\n\r\n" * 200_000)
    page.goto(f"/notes/{note.id}/")
    expect(page.get_by_text("Shown: part 1 of").first).to_be_visible()
    page.get_by_role("link", name="Next part").first.click()
    expect(page.get_by_text("Shown: part 2 of").first).to_be_visible()
    page.get_by_role("link", name="Edit").click()
    expect(page.locator("#preview p").first).to_be_visible(timeout=15_000)
    for text in ("one\n", "one and two\n"):
        page.get_by_label("Text").fill(text)
        page.keyboard.press("Control+s")
        expect(page.locator("#editor-state")).to_have_text("Saved")
        expect(page.locator("#preview")).to_have_text(text.strip())
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".note .prose")).to_contain_text("one and two", timeout=15_000)
    before, content = note.content, note_get(owner=user, note_id=note.id).content
    length = (len(before) - len(content)) + len("one and two\r\n")
    assert content[:130_000].startswith(before[:100_000])
    assert content.replace("one and two\r\n", before[:length]) == before


def test_searching_while_editing_leaves_the_editor_and_its_address_alone(page, user):
    note = note_create(owner=user, title="Plan", content="first")
    page.goto(f"/notes/{note.id}/edit/")
    page.get_by_label("Text").fill("second")
    page.get_by_role("searchbox").press_sequentially("nothing")
    expect(page.locator(".nothing")).to_be_visible()
    assert page.get_by_label("Text").input_value() == "second"
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".note .prose")).to_have_text("second")


def test_history_shows_what_changed_and_restores_it(page, user):
    note = note_create(owner=user, title="Plan", content="milk and eggs and tea")
    note_update(owner=user, note_id=note.id, content="milk and bread and tea")
    page.goto(f"/notes/{note.id}/")
    page.get_by_role("link", name="History").click()
    expect(page.locator(".diff ins mark")).to_have_text("bread")
    expect(page.locator(".diff del mark")).to_have_text("eggs")
    page.get_by_role("link", name="Created").click()
    page.get_by_role("button", name="Restore this version").click()
    expect(page.locator(".note .prose")).to_have_text("milk and eggs and tea")
    page.get_by_role("link", name="History").click()
    expect(page.get_by_role("link", name="Restored version 1")).to_be_visible()


def test_history_on_a_phone_is_the_list_and_then_one_version(open_context, client_of, user):
    note = note_create(owner=user, title="Plan", content="milk")
    note_update(owner=user, note_id=note.id, content="bread")
    page = open_context(client_of(user), viewport={"width": 390, "height": 844}).new_page()
    page.goto(f"/notes/{note.id}/history/")
    expect(page.locator(".diff")).to_be_hidden()
    page.get_by_role("link", name="Edited").click()
    expect(page.locator(".diff")).to_be_visible()
    expect(page.locator(".versions")).to_be_hidden()
    page.get_by_role("link", name="All versions").click()
    expect(page.locator(".versions")).to_be_visible()


def test_conflict_shows_both_texts(page, user, watch):
    note = note_create(owner=user, title="Plan", content="first")
    page.goto(f"/notes/{note.id}/edit/")
    page.get_by_label("Text").fill("mine")
    note_update(owner=user, note_id=note.id, content="theirs", expected_version=1)
    page.keyboard.press("Control+s")
    expect(page.get_by_text("was changed since you opened it")).to_be_visible()
    assert page.get_by_label("Text").input_value() == "mine"
    assert page.locator("#stored").input_value() == "theirs"
    page.get_by_role("button", name="Save mine over it").click()
    expect(page.locator(".note .prose")).to_have_text("mine")
    # Chromium writes each answer that is an error to the console: the conflict, twice.
    watch.faults = [fault for fault in watch.faults if "409" not in fault]


def test_text_stays_where_the_server_does_not_take_it(page, user, watch):
    note = note_create(owner=user, title="Plan", content="first")
    page.goto(f"/notes/{note.id}/edit/")
    page.get_by_label("Text").fill("mine")
    save = page.get_by_role("button", name="Save", exact=True)
    page.context.set_offline(True)
    save.click()
    expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    page.context.set_offline(False)
    cookies = page.context.cookies()
    page.context.clear_cookies()
    save.click()
    expect(page.get_by_text("You were logged out.")).to_be_visible()
    assert page.get_by_label("Text").input_value() == "mine"
    page.context.add_cookies(cookies)
    save.click()
    expect(page.locator(".note .prose")).to_have_text("mine")
    watch.faults.clear()
