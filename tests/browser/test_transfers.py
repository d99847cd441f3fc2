"""Import and export in the browser: upload, progress that arrives by itself, report, download."""

import io
import zipfile

import pytest
from playwright.sync_api import expect

from tests.browser.test_access import assert_accessible
from tests.notes.writing import note_create


@pytest.fixture(autouse=True)
def _home(settings, tmp_path):
    settings.NOTEWIRE_HOME = tmp_path


def vault() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for number in range(600):
            archive.writestr(f"Area/Note {number}.md", f"text {number} #tag")
        archive.writestr("picture.png", b"\x89PNG")
        archive.writestr("../up.md", "no")
    return data.getvalue()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_archive_is_uploaded_and_its_report_appears(open_context, client_of, user, scheme, width):
    size = {"width": width, "height": 900}
    page = open_context(client_of(user), color_scheme=scheme, viewport=size).new_page()
    page.goto("/notes/")
    page.get_by_role("link", name="Import and export").click()
    assert_accessible(page)
    file = {"name": "vault.zip", "mimeType": "application/zip", "buffer": vault()}
    page.get_by_label("ZIP archive").set_input_files(file)
    page.get_by_label("Into the folder").fill("/vault/")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", name="Import of vault.zip")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Done.")).to_be_visible(timeout=30_000)
    expect(page.locator(".counts")).to_contain_text("600")
    expect(page.locator(".report")).to_contain_text("../up.md")
    expect(page.locator(".report")).to_contain_text("An attachment")
    assert_accessible(page)
    page.get_by_role("link", name="Show /vault/").click()
    expect(page.locator(".listing")).to_contain_text("600 notes")


def test_export_is_downloaded(open_context, client_of, user):
    note_create(owner=user, title="Mine", content="x")
    page = open_context(client_of(user)).new_page()
    page.goto("/notes/transfers/")
    with page.expect_download() as started:
        page.get_by_role("link", name="Download all notes").click()
    with zipfile.ZipFile(started.value.path()) as archive:
        assert archive.namelist() == ["Mine.md"]
    assert started.value.suggested_filename.startswith("notewire-")
