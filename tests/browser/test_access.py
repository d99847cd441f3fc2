"""What axe finds on every page, light and dark, wide and narrow: nothing, at 7:1 contrast."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.test_chat import STORY, finished, send
from tests.notes.writing import note_create, note_delete, note_update

MARKDOWN = """# Plan

Some **bold** text, `code` and a [link](https://example.org).

> A quotation

| name | value |
|---|--:|
| milk | 2 |

```python
def f(x: int) -> str:
    return "hello" + str(x)  # comment
```
"""
OPTIONS = {"rules": {"color-contrast-enhanced": {"enabled": True}}}


def assert_accessible(page: Page) -> None:
    found = Axe().run(page, options=OPTIONS).response["violations"]
    assert not [
        (page.url, each["id"], node["html"], node["failureSummary"])
        for each in found
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_pages_have_no_fault_that_axe_knows(open_context, client_of, user, scheme, width):
    note = note_create(owner=user, title="Plan", content=MARKDOWN, folder="/a/b/", tags=["one"])
    note_update(owner=user, note_id=note.id, content=MARKDOWN.replace("bold", "loud"))
    deleted = note_create(owner=user, title="Old")
    note_delete(owner=user, note_id=deleted.id)
    history = (f"{note.id}/history/", f"{note.id}/history/2/", "bin/")
    size = {"width": width, "height": 900}
    page = open_context(client_of(user), color_scheme=scheme, viewport=size).new_page()
    page.goto("/")
    assert_accessible(page)
    send(page, STORY)
    finished(page)
    page.locator(".call summary").first.click()
    assert_accessible(page)
    for path in ("", "?q=bold&folder=/a/", f"{note.id}/", f"{note.id}/edit/", "new/", *history):
        page.goto(f"/notes/{path}")
        assert_accessible(page)
    page.goto("/settings/")
    assert_accessible(page)
    page = open_context(color_scheme=scheme, viewport=size).new_page()
    page.goto("/login/")
    assert_accessible(page)
