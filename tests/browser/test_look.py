"""What no page may do: be wider than its window, or forget the chosen theme."""

from itertools import pairwise

import pytest
from playwright.sync_api import expect

from chat.runs.lifecycle import run_start
from chat.testing import ScriptedProvider, calls, says
from notes.models import NoteTransfer, NoteTransferFile
from tests.browser.test_chat import finished, send
from tests.notes.writing import note_create, note_delete

LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 3
PAGES = ["/", "/notes/", "/notes/?q=word", "/notes/new/", "/login/", "conversation", "note", "edit"]
PAGES += ["history", "version", "bin", "/notes/transfers/", "transfer", "/settings/"]


@pytest.mark.parametrize("width", [360, 900, 1440])
def test_no_page_is_wider_than_its_window(open_context, client_of, user, width):
    table = "|".join(LONG[:30] for _ in range(12))
    content = f"{LONG}\n\n```\n{LONG}\n```\n\n{table}\n{'|'.join(['--'] * 12)}\n"
    note = note_create(owner=user, title=LONG[:400], content=content, folder=f"/{LONG[:90]}/")
    deleted = note_create(owner=user, title=LONG[:400], content=content, folder=f"/{LONG[:90]}/")
    note_delete(owner=user, note_id=deleted.id)
    run = run_start(owner=user, content=LONG)
    paths = {
        "conversation": f"/chat/{run.conversation_id}/",
        "note": f"/notes/{note.id}/",
        "edit": f"/notes/{note.id}/edit/",
        "history": f"/notes/{note.id}/history/",
        "version": f"/notes/{note.id}/history/1/",
        "bin": "/notes/bin/",
        "transfer": f"/notes/transfers/{_transfer(user).pk}/",
    }
    page = open_context(client_of(user), viewport={"width": width, "height": 800}).new_page()
    for name in PAGES:
        page.goto(paths.get(name, name))
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        inner = page.locator("#main").evaluate("e => e.scrollWidth - e.clientWidth")
        assert (name, max(wide, inner)) == (name, 0)


@pytest.mark.parametrize("width", [390, 1440])
def test_editor_is_as_wide_as_its_pane_whatever_is_previewed(open_context, client_of, user, width):
    note = note_create(owner=user, title="Code", content=f"```\n{LONG}\n```\n")
    page = open_context(client_of(user), viewport={"width": width, "height": 844}).new_page()
    page.goto(f"/notes/{note.id}/edit/")
    expect(page.locator("#preview pre")).to_be_visible()
    assert page.locator(".detail").evaluate("e => e.scrollWidth - e.clientWidth") == 0


@pytest.mark.parametrize("path", ["/", "/approvals/", "/notes/", "/notes/new/", "/settings/"])
def test_no_page_is_wider_than_its_window_with_text_of_twice_the_size(
    open_context, client_of, user, path
):
    user.is_staff = True
    user.save()
    page = open_context(client_of(user), viewport={"width": 390, "height": 844}).new_page()
    page.goto(path)
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    inner = page.locator("#main").evaluate("e => e.scrollWidth - e.clientWidth")
    assert (wide, inner) == (0, 0)
    expect(page.get_by_role("link", name="Settings")).to_be_in_viewport()


def test_long_conversation_moves_in_its_pane_and_toasts_leave_the_composer_free(
    open_context, client_of, user, answer_with
):
    made = [("note_create", {"title": f"Note {number}"}) for number in range(40)]
    answer_with(ScriptedProvider(calls(*made), says("Done.")))
    page = open_context(client_of(user), viewport={"width": 390, "height": 844}).new_page()
    page.goto("/")
    bottom = page.locator(".rail").bounding_box()["y"]
    composer = page.locator("#composer")
    assert bottom - composer.bounding_box()["y"] < 100
    send(page, "Make forty notes")
    finished(page)
    assert page.locator("#main").evaluate("e => e.scrollHeight - e.clientHeight") == 0
    page.get_by_role("button", name="Undo everything").click()
    toast = page.locator(".toast")
    expect(toast).to_be_visible()
    box = toast.bounding_box()
    assert box["y"] + box["height"] <= composer.bounding_box()["y"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390])
def test_labels_of_the_bottom_bar_take_one_line(open_context, client_of, user, width, scheme):
    user.is_staff = True
    user.save()
    options = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    page = open_context(client_of(user), **options).new_page()
    page.goto("/")
    labels = page.locator(".rail :is(a, button) span:visible")
    boxes = {label.inner_text(): label.bounding_box() for label in labels.all()}
    assert boxes.keys() == {"Chat", "Notes", "Inbox", "Theme", "Settings", "Admin", "Log out"}
    assert {name for name, box in boxes.items() if box["height"] > 20} == set()
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes.values()]
    assert all(end < start for (_, end), (start, _) in pairwise(ends))
    assert 0 < ends[0][0] < ends[-1][1] < width


def _transfer(owner):
    transfer = NoteTransfer.objects.create(owner=owner, name=LONG[:200], status="finished")
    NoteTransferFile.objects.create(
        transfer=transfer, position=1, path=LONG * 2, outcome="refused", reason=LONG
    )
    return transfer


@pytest.mark.parametrize(("system", "other"), [("light", "dark"), ("dark", "light")])
def test_theme_follows_the_system_until_another_is_chosen(
    open_context, client_of, user, system, other
):
    page = open_context(client_of(user), color_scheme=system).new_page()
    page.goto("/")
    scheme = "matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'"
    assert page.evaluate(scheme) == system
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    before = page.evaluate(ground)
    page.get_by_role("button", name="Theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", other)
    changed = page.evaluate(ground)
    assert changed != before
    page.goto("/notes/")
    assert page.evaluate(ground) == changed
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate(ground) == before
    page.reload()
    assert page.evaluate(ground) == before
    expect(page.locator("html")).not_to_have_attribute("data-theme", other)


@pytest.mark.parametrize("theme", ["", "light", "dark"])
@pytest.mark.parametrize("system", ["light", "dark"])
def test_page_of_the_api_has_the_colours_of_the_others(open_context, server, system, theme):
    context = open_context(color_scheme=system)
    if theme:
        context.add_cookies([{"name": "theme", "value": theme, "url": server.url}])
    page = context.new_page()
    page.goto("/login/")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    expected = page.evaluate(ground)
    page.goto("/api/docs/")
    title = page.locator(".swagger-ui .info .title")
    expect(title).to_be_visible()
    assert page.evaluate(ground) == expected
    colour = title.evaluate("title => getComputedStyle(title).color.match(/\\d+/g).map(Number)")
    assert (min(colour[:3]) > 180) == ((theme or system) == "dark")
    if not theme:
        page.emulate_media(color_scheme="dark" if system == "light" else "light")
        expect(page.locator("html.dark-mode")).to_have_count(1 if system == "light" else 0)
