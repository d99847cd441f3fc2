"""An export holds all that a note has, and an import gives it back."""

from __future__ import annotations

import io
import uuid
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accounts.models import User
from chat.models import Conversation
from notes.folders import folder_normalised
from notes.models import Note, NoteOrigin
from notes.rules import is_visible
from notes.tags import tags_normalised
from notes.transfer import dialects
from notes.transfer.names import UniqueNames
from tests.notes.writing import note_create, note_delete, note_update

from .conftest import Importer, exported, imported, outcomes, reason

storable = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
names = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="/\\"),
    min_size=1,
    max_size=20,
).filter(lambda name: name.strip() not in {".", ".."} and is_visible(name))
contents = st.one_of(
    st.text(storable, max_size=200),
    st.sampled_from(
        [
            "",
            "\n",
            "\n\n\ntext",
            "no newline at the end",
            "line\r\nline\rline\r\n",
            "---\ntitle: not mine\n---\nbody\n",
            "---",
            "---\n",
            "...\n---\n",
            "\ufeffmark",
            "\x07\x1b[0m\x85\u2028",
            "#tag #other [[link]] ![[picture.png]]",
        ]
    ),
)
times = st.datetimes(datetime(1000, 1, 1), datetime(2026, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
fields = st.fixed_dictionaries(
    {
        "title": st.one_of(
            st.text(storable, max_size=60),
            st.sampled_from(
                ["null", "~", "", "yes", "2024-01-01", "a: b", "- x", "CON", "\n", "'\""]
            ),
        ),
        "content": contents,
        "folder": st.one_of(
            st.lists(names, max_size=3).map("/".join),
            st.sampled_from(["/A/", "/a/", "/con/x./", "/.hidden/", "/__MACOSX/", "/a:b/c?/"]),
        ),
        "tags": st.lists(names, max_size=4),
        "language": st.sampled_from(["", "german", "english"]),
    }
)
KEPT = ("title", "content", "folder", "tags", "tags_folded", "language", "created", "updated")


def state(note: Note) -> dict[str, Any]:
    return {name: getattr(note, name) for name in KEPT}


@pytest.mark.thorough
@given(values=fields, created=times, updated=times, source=st.none() | st.uuids())
@settings(max_examples=400)
@example(
    values={"title": "a", "content": "", "folder": "/", "tags": [], "language": ""},
    created=datetime(1, 1, 1, tzinfo=UTC),
    updated=datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    source=None,
)
def test_file_says_all_that_a_note_has(values, created, updated, source):
    shown, folded = tags_normalised(values.pop("tags"))
    note = Note(
        **values | {"folder": folder_normalised(values["folder"])},
        tags=shown,
        tags_folded=folded,
        created=created,
        updated=updated,
        version=7,
        source_conversation_id=source,
    )
    name, text = dialects.as_file(note, UniqueNames())
    text = text.encode().decode()
    draft = dialects.draft(name.split("/"), text, None)
    assert not dialects.skipped(name.split("/"))
    assert (draft.title, draft.content) == (note.title, note.content)
    assert (folder_normalised(draft.folder), draft.tags) == (note.folder, note.tags)
    assert (draft.language, draft.created, draft.updated) == (note.language, created, updated)
    assert (draft.id, draft.version, draft.source_conversation) == (note.id, 7, source)
    assert draft.remarks == []


@pytest.mark.thorough
@given(notes=st.lists(fields, max_size=4), data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_export_into_another_account_gives_the_same_notes(
    alice: User, mallory: User, tmp_path: Path, notes, data
):
    Note.objects.all().delete()
    for values in notes:
        note = note_create(owner=alice, **values)
        Note.objects.filter(pk=note.pk).update(created=data.draw(times), updated=data.draw(times))
    transfer = imported(mallory, exported(alice), tmp_path / "a.zip")
    assert set(outcomes(transfer).values()) <= {"created"}
    mine = list(map(state, Note.objects.filter(owner=alice)))
    theirs = list(map(state, Note.objects.filter(owner=mallory)))
    assert len(mine) == len(theirs) == len(notes)
    assert all(note in theirs for note in mine)
    assert set(Note.objects.filter(owner=mallory).values_list("version", flat=True)) <= {1}


def test_own_export_meets_its_own_notes(alice: User, do_import: Importer):
    kept = note_create(owner=alice, title="Kept", content="a")
    changed = note_create(owner=alice, title="Changed", content="b", folder="/x/")
    archive = exported(alice)
    note_update(owner=alice, note_id=changed.pk, content="newer")
    before = list(Note.objects.order_by("id").values())

    transfer = do_import(alice, archive)

    assert outcomes(transfer) == {"Kept.md": "unchanged", "x/Changed.md": "kept"}
    assert list(Note.objects.order_by("id").values()) == before
    assert do_import(alice, archive, overwrite=True).files_updated == 1
    assert Note.objects.get(pk=changed.pk).content == "b"
    assert Note.objects.get(pk=kept.pk).version == 1


def test_file_changed_elsewhere_changes_its_own_note(alice: User, do_import: Importer):
    note = note_create(owner=alice, title="List", content="milk\n", tags=["Food"])
    archive = exported(alice)
    edited = archive_text(archive).replace("milk\n", "milk\neggs\n")
    transfer = do_import(alice, {"List.md": edited})
    assert outcomes(transfer) == {"List.md": "updated"}
    stored = Note.objects.get()
    assert (stored.pk, stored.content, stored.version) == (note.pk, "milk\neggs\n", 2)
    assert outcomes(do_import(alice, {"List.md": edited})) == {"List.md": "unchanged"}


def test_file_of_a_later_export_changes_its_note(alice: User, do_import: Importer):
    """What was edited elsewhere, then here, then elsewhere again, each on what there was."""
    note = note_create(owner=alice, title="List", content="milk\n")
    first = archive_text(exported(alice)) + "eggs\n"
    assert outcomes(do_import(alice, {"List.md": first})) == {"List.md": "updated"}
    note_update(owner=alice, note_id=note.pk, content="milk\neggs\nbread\n")
    second = archive_text(exported(alice)) + "butter\n"
    assert outcomes(do_import(alice, {"List.md": second})) == {"List.md": "updated"}
    stored = Note.objects.get()
    assert (stored.pk, stored.content) == (note.pk, "milk\neggs\nbread\nbutter\n")
    note_update(owner=alice, note_id=note.pk, content="mine")
    for stale in (first, second):
        assert outcomes(do_import(alice, {"List.md": f"{stale}!"})) == {"List.md": "kept"}


def test_dates_in_the_future_become_now_and_are_said(alice: User, do_import: Importer):
    files = [
        ("a.md", "---\ncreated: 2020-01-01\nupdated: 2050-01-01\n---\nx"),
        (zipfile.ZipInfo("b.md", (2099, 1, 1, 0, 0, 0)), "x"),
        ("c.md", "---\nnotewire: 1\nupdated: 2050-01-01\n---\nx"),
    ]
    transfer = do_import(alice, files)
    assert set(outcomes(transfer).values()) == {"created"}
    for note in Note.objects.all():
        assert note.updated <= timezone.now()
    assert Note.objects.get(title="a").created.year == 2020
    said = "updated: 2050-01-01 is in the future: now is taken."
    assert reason(transfer, "a.md") == reason(transfer, "c.md") == said
    assert "2099-01-01 is in the future" in reason(transfer, "b.md")


def test_note_in_the_bin_stays_there(alice: User, do_import: Importer):
    note = note_create(owner=alice, title="T", content="first")
    archive = exported(alice)
    note_delete(owner=alice, note_id=note.pk)
    edited = archive_text(archive).replace("first", "second")
    for files in (archive, {"T.md": edited}):
        transfer = do_import(alice, files)
        assert outcomes(transfer) == {"T.md": "kept"}
        assert reason(transfer, "T.md") == "The note is in the bin, and stays there."
    assert not Note.objects.owned_by(alice).exists()


def test_note_in_the_bin_comes_back_as_the_file_has_it_where_it_may_overwrite(
    alice: User, do_import: Importer
):
    note = note_create(owner=alice, title="T", content="first")
    archive = exported(alice)
    note_update(owner=alice, note_id=note.pk, content="second")
    note_delete(owner=alice, note_id=note.pk)
    transfer = do_import(alice, archive, overwrite=True)
    assert outcomes(transfer) == {"T.md": "updated"}
    assert reason(transfer, "T.md") == "Taken out of the bin."
    stored = Note.objects.owned_by(alice).get()
    assert (stored.pk, stored.content) == (note.pk, "first")
    authors = set(stored.revisions.filter(via="import").values_list("change", flat=True))
    assert authors == {"undeleted", "edited"}
    assert outcomes(do_import(alice, archive)) == {"T.md": "unchanged"}


def test_sources_are_kept_only_where_they_are_the_owners(
    alice: User, mallory: User, do_import: Importer
):
    mine = Conversation.objects.create(owner=alice)
    note_create(owner=alice, title="T", source_conversation_id=mine.pk)
    archive = exported(alice)
    Note.objects.all().delete()
    do_import(mallory, archive)
    assert Note.objects.get().source_conversation_id is None
    Note.objects.all().delete()
    do_import(alice, archive)
    assert Note.objects.get().source_conversation_id == mine.pk


def test_id_of_another_is_made_anew_and_says_nothing(
    alice: User, mallory: User, do_import: Importer
):
    secret = note_create(owner=alice, title="Secret", content="s")
    known = exported(alice)
    missing = archive_text(known).replace(str(secret.pk), str(uuid.uuid4()))
    for files in (known, {"Secret.md": missing}):
        transfer = do_import(mallory, files)
        assert outcomes(transfer) == {"Secret.md": "created"}
    assert Note.objects.get(owner=alice).content == "s"
    assert Note.objects.filter(owner=mallory).count() == 2
    assert not Note.objects.filter(owner=mallory, pk=secret.pk).exists()
    assert outcomes(do_import(mallory, known)) == {"Secret.md": "unchanged"}
    assert NoteOrigin.objects.filter(owner=mallory).count() == 2


def archive_text(archive: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        (name,) = opened.namelist()
        return opened.read(name).decode()


def test_folders_that_differ_in_case_come_back_from_a_disk_that_ignores_it(
    alice: User, mallory: User, do_import: Importer
):
    folders = ["/Work/", "/work/", "/work/x/", "/Work/x/", "/other/", "/caf\u00e9/"]
    for folder in folders:
        note_create(owner=alice, title=f"In {folder}", folder=folder)
    spelled: dict[str, str] = {}
    files = {}
    with zipfile.ZipFile(io.BytesIO(exported(alice))) as opened:
        for name in opened.namelist():
            parts = name.split("/")
            paths = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
            on_disk = [spelled.setdefault(path.lower(), path.split("/")[-1]) for path in paths]
            files["/".join(on_disk)] = opened.read(name)
    assert len(files) == len(folders)
    do_import(mallory, files)
    notes = Note.objects.filter(owner=mallory)
    assert sorted(notes.values_list("title", "folder")) == sorted(
        (f"In {folder}", folder) for folder in folders
    )


@pytest.mark.django_db
def test_export_is_a_zip_that_the_standard_library_takes(alice: User, tmp_path: Path):
    for title in ("Groceries", "groceries", "Groceries", "a/b", ""):
        note_create(owner=alice, title=title, content=title * 300, folder="/Ä/")
    (tmp_path / "a.zip").write_bytes(exported(alice))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [
            "Ä/Groceries.md",
            "Ä/groceries (2).md",
            "Ä/Groceries (3).md",
            "Ä/a_b.md",
            "Ä/Untitled.md",
        ]
