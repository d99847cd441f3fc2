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


@pytest.fixture
def large_archive(tmp_path):
    path = tmp_path / "large.zip"
    with path.open("wb") as file:
        file.truncate(34 * 1024 * 1024)
    return path


def test_archive_that_is_too_large_is_refused_before_it_is_sent(page, large_archive):
    page.goto("/notes/transfers/")
    sent = []
    page.on("request", lambda request: sent.append(request.method))
    page.get_by_label("ZIP archive").set_input_files(large_archive)
    expect(page.get_by_role("alert")).to_contain_text("At most 32 MiB")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert "POST" not in sent
    file = {"name": "x.zip", "mimeType": "application/zip", "buffer": b"no"}
    page.get_by_label("ZIP archive").set_input_files(file)
    expect(page.get_by_role("alert")).to_be_hidden()


def test_mistake_is_shown_in_the_form_after_the_upload(page, watch):
    page.goto("/notes/transfers/")
    file = {"name": "x.zip", "mimeType": "application/zip", "buffer": b"no"}
    page.get_by_label("ZIP archive").set_input_files(file)
    page.get_by_label("Into the folder").fill("/kept/")
    page.get_by_role("button", name="Import").click()
    expect(page.locator(".errorlist").first).to_have_text("This is not a ZIP archive.")
    expect(page.get_by_label("Into the folder")).to_have_value("/kept/")
    file["buffer"] = vault()
    page.get_by_label("ZIP archive").set_input_files(file)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", name="Import of x.zip")).to_be_visible()
    watch.faults = [fault for fault in watch.faults if "400" not in fault]


def test_archive_that_is_too_large_is_refused_in_words_without_script(
    open_context, client_of, user, large_archive, watch
):
    page = open_context(client_of(user), java_script_enabled=False).new_page()
    page.goto("/notes/transfers/")
    page.get_by_label("ZIP archive").set_input_files(large_archive)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("alert")).to_contain_text("At most 32 MiB")
    expect(page.get_by_role("button", name="Import")).to_be_visible()
    watch.faults = [fault for fault in watch.faults if "413" not in fault]


def test_export_is_downloaded(open_context, client_of, user):
    note_create(owner=user, title="Mine", content="x")
    page = open_context(client_of(user)).new_page()
    page.goto("/notes/transfers/")
    with page.expect_download() as started:
        page.get_by_role("link", name="Download all notes").click()
    with zipfile.ZipFile(started.value.path()) as archive:
        assert archive.namelist() == ["Mine.md"]
    assert started.value.suggested_filename.startswith("notewire-")
