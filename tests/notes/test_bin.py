"""What becomes of deleted notes: restored, or after 30 days purged with all that hangs on them."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from procrastinate.contrib.django import app

from accounts.models import User
from chat.models import Conversation
from notes import services
from notes.exceptions import NoteInBin, NoteNotFound, NoteVersionConflict
from notes.jobs import bins_empty
from notes.models import Note, NoteRevision, NoteSeen
from notes.search import search
from notes.selectors import bin_list, folder_counts, note_get, note_list, tag_counts
from notes.services import KEPT_IN_BIN, bin_purge
from tests.notes.writing import by, note_create, note_delete, note_update
from tools.threads import unit_of_work


def restore(note: Note, owner: User, **options: int) -> Note:
    return services.note_restore(owner=owner, author=by(owner), note_id=note.pk, **options)


def binned(owner: User, *, days: float = 0, title: str = "T") -> Note:
    note = note_create(owner=owner, title=title, content="milk", folder="a", tags=["x"])
    note_delete(owner=owner, note_id=note.pk)
    moment = timezone.now() - timedelta(days=days)
    Note.objects.filter(pk=note.pk).update(deleted=moment)
    return note


def test_note_in_the_bin_is_nowhere_else_and_comes_back_as_it_was(alice: User) -> None:
    note = binned(alice)

    def found() -> list[int]:
        return [
            note_list(owner=alice).count(),
            search(owner=alice, query="milk").total,
            len(folder_counts(owner=alice)),
            len(tag_counts(owner=alice)),
        ]

    assert found() == [0, 0, 0, 0]
    assert [each.pk for each in bin_list(owner=alice)] == [note.pk]
    after = restore(note, alice)
    assert (after.title, after.content, after.folder, after.tags) == ("T", "milk", "/a/", ["x"])
    assert (after.version, after.deleted) == (3, None)
    assert found() == [1, 1, 1, 1]
    assert not bin_list(owner=alice).exists()


def test_note_in_the_bin_is_told_apart_to_its_owner_alone(alice: User, mallory: User) -> None:
    note = binned(alice)
    with pytest.raises(NoteInBin):
        note_get(owner=alice, note_id=note.pk)
    with pytest.raises(NoteInBin):
        note_update(owner=alice, note_id=note.pk, title="U")
    for reach in (lambda: note_get(owner=mallory, note_id=note.pk), lambda: restore(note, mallory)):
        with pytest.raises(NoteNotFound) as caught:
            reach()
        assert not isinstance(caught.value, NoteInBin)
    assert Note.objects.get().deleted is not None
    assert not bin_list(owner=mallory).exists()


def test_note_is_restored_on_the_version_that_was_expected(alice: User) -> None:
    note = binned(alice)
    with pytest.raises(NoteVersionConflict):
        restore(note, alice, expected_version=1)
    assert restore(note, alice, expected_version=2).version == 3


def test_purge_deletes_what_is_old_and_all_that_hangs_on_it(alice: User, mallory: User) -> None:
    conversation = Conversation.objects.create(owner=alice)
    old = [binned(alice, days=31), binned(mallory, days=31)]
    NoteSeen.objects.create(conversation=conversation, note=old[0], version=1)
    kept = [binned(alice, days=29), note_create(owner=alice)]
    assert bin_purge(before=timezone.now() - KEPT_IN_BIN) == 2
    assert set(Note.objects.values_list("pk", flat=True)) == {note.pk for note in kept}
    assert set(NoteRevision.objects.values_list("note", flat=True)) == {note.pk for note in kept}
    assert not NoteSeen.objects.exists()
    assert Conversation.objects.exists()


def test_purge_goes_on_until_nothing_is_left_and_reads_no_content(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "PURGED_AT_ONCE", 2)
    for _ in range(5):
        binned(alice, days=31)
    with CaptureQueriesContext(connection) as queries:
        assert bin_purge(before=timezone.now()) == 5
    assert not Note.objects.exists()
    assert not any('"content"' in each["sql"] for each in queries)


@pytest.mark.parametrize(
    ("options", "said", "left"),
    [
        ({}, "1 note deleted for good.\n", ["new"]),
        ({"days": 0}, "2 notes deleted for good.\n", []),
        ({"days": 60}, "0 notes deleted for good.\n", ["new", "old"]),
    ],
)
def test_command_purges_after_so_many_days(
    alice: User, options: dict[str, int], said: str, left: list[str]
) -> None:
    binned(alice, days=31, title="old")
    binned(alice, days=1, title="new")
    out = StringIO()
    call_command("notes_purge", stdout=out, **options)
    assert out.getvalue() == said
    assert sorted(Note.objects.values_list("title", flat=True)) == left


@pytest.mark.parametrize("days", [-1, 10**9])
def test_command_refuses_days_that_are_none(db: None, days: int) -> None:
    with pytest.raises(CommandError, match="from 0 to 36500"):
        call_command("notes_purge", days=days)


async def test_worker_purges_by_itself(units: None, alice: User) -> None:
    await unit_of_work(binned, alice, days=31)
    app.perform_import_paths()
    tasks = {each.task.name: each.task for each in app.periodic_registry.periodic_tasks.values()}
    assert tasks["notes_purge"] is bins_empty
    await bins_empty(timestamp=0)
    assert await unit_of_work(Note.objects.count) == 0
