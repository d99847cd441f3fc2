from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from notes.exceptions import NoteInvalid
from notes.models import Note
from notes.selectors import FolderCount, TagCount, folder_counts, note_list, tag_counts
from tests.notes.writing import note_create, note_delete, note_update


def titles(notes: Iterable[Note]) -> list[str]:
    return sorted(note.title for note in notes)


def test_note_list_has_the_newest_change_first_without_contents(alice: User) -> None:
    old = note_create(owner=alice, title="old", content="é" * 300)
    note_create(owner=alice, title="new")
    note_update(owner=alice, note_id=old.pk, title="changed")
    notes = list(note_list(owner=alice))
    assert [note.title for note in notes] == ["changed", "new"]
    assert (notes[0].preview, notes[0].size) == ("é" * 200, 600)
    assert "content" in notes[0].get_deferred_fields()


@pytest.mark.parametrize(
    ("folder", "subfolders", "found"),
    [
        ("/a/", False, ["/a/"]),
        ("a", True, ["/a/", "/a/b/"]),
        ("/", False, ["/"]),
        ("/", True, ["/", "/%/x/", "/A/", "/a/", "/a/b/", "/aXb/c/", "/a_b/c/", "/ab/"]),
        ("a_b", True, ["/a_b/c/"]),
        ("%", True, ["/%/x/"]),
        ("A", True, ["/A/"]),
    ],
)
def test_note_list_of_a_folder_has_neither_siblings_nor_wildcards(
    alice: User, folder: str, subfolders: bool, found: list[str]
) -> None:
    for path in ("/", "/a/", "/a/b/", "/ab/", "/A/", "/a_b/c/", "/aXb/c/", "/%/x/"):
        note_create(owner=alice, title=path, folder=path)
    assert titles(note_list(owner=alice, folder=folder, subfolders=subfolders)) == found


def test_note_list_of_tags_has_all_of_them_in_any_case(alice: User) -> None:
    note_create(owner=alice, title="both", tags=["Red", "Blue"])
    note_create(owner=alice, title="red", tags=["RED"])
    assert titles(note_list(owner=alice, tags=["red"])) == ["both", "red"]
    assert titles(note_list(owner=alice, tags=["red", "BLUE"])) == ["both"]
    assert titles(note_list(owner=alice, tags=["re"])) == []


def test_note_list_of_what_changed_since(alice: User) -> None:
    first = note_create(owner=alice, title="first")
    second = note_create(owner=alice, title="second")
    assert titles(note_list(owner=alice, updated_after=first.updated)) == ["second"]
    assert titles(note_list(owner=alice, updated_before=second.updated)) == ["first"]
    later = second.updated + timedelta(seconds=1)
    assert titles(note_list(owner=alice, updated_after=later)) == []


def test_note_list_with_a_bad_filter_says_which(alice: User) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"folder": ".."}, "folder"),
        ({"tags": ["\n"]}, "tag"),
    ]
    for filters, field in bad:
        with pytest.raises(NoteInvalid) as caught:
            note_list(owner=alice, **filters)
        assert caught.value.field == field


def test_counts_are_of_the_owners_notes_outside_the_bin(alice: User, mallory: User) -> None:
    note_create(owner=alice, folder="a", tags=["Water", "tea"])
    note_create(owner=alice, folder="a", tags=["water"])
    note_create(owner=alice, folder="b", tags=["WATER"])
    gone = note_create(owner=alice, folder="gone", tags=["gone"])
    note_delete(owner=alice, note_id=gone.pk)
    note_create(owner=mallory, folder="hers", tags=["hers", "water"])
    assert folder_counts(owner=alice) == [FolderCount("/a/", 2), FolderCount("/b/", 1)]
    assert tag_counts(owner=alice) == [TagCount("Water", 3), TagCount("tea", 1)]
    assert titles(note_list(owner=mallory)) == [""]


def test_reads_ask_as_often_for_many_notes_as_for_few(alice: User) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            list(note_list(owner=alice))
            folder_counts(owner=alice)
            tag_counts(owner=alice)
        return len(captured)

    note_create(owner=alice)
    few = queries()
    for number in range(20):
        note_create(owner=alice, folder=str(number), tags=[str(number)])
    assert queries() == few == 3
