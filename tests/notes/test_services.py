from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from chat.models import Conversation, Message
from notes.exceptions import (
    NoteError,
    NoteInvalid,
    NoteNotFound,
    NotePassageError,
    NoteTooLarge,
    NoteVersionConflict,
)
from notes.models import Note
from notes.rules import MAX_CONTENT_BYTES, MAX_TITLE
from notes.selectors import note_get, note_list
from tests.notes.writing import note_create, note_delete, note_edit, note_update

CHANGES: dict[str, Callable[[User, UUID], object]] = {
    "update": lambda owner, note: note_update(owner=owner, note_id=note, title="mine"),
    "edit": lambda owner, note: note_edit(
        owner=owner, note_id=note, old_text="milk", new_text="mine"
    ),
    "delete": lambda owner, note: note_delete(owner=owner, note_id=note),
    "get": lambda owner, note: note_get(owner=owner, note_id=note),
}


def reread(note: Note) -> Note:
    return Note.objects.get(pk=note.pk)


def test_note_create_stores_what_it_was_given(alice: User) -> None:
    note = note_create(
        owner=alice, title=" T ", content="a\r\n", folder="a//b", tags=["X", "x"], language="german"
    )
    stored = reread(note)
    assert (stored.title, stored.content, stored.folder) == (" T ", "a\r\n", "/a/b/")
    assert (stored.tags, stored.tags_folded, stored.language) == (["X"], ["x"], "german")
    assert (stored.version, stored.owner_id, stored.deleted) == (1, alice.pk, None)


@pytest.mark.parametrize(
    ("values", "field", "code"),
    [
        ({"title": "x" * (MAX_TITLE + 1)}, "title", "invalid"),
        ({"title": "a\x00"}, "title", "null_character"),
        ({"content": "a\x00"}, "content", "null_character"),
        ({"content": "\ud800"}, "content", "invalid"),
        ({"folder": ".."}, "folder", "invalid"),
        ({"tags": ["a\x00"]}, "tags", "null_character"),
        ({"language": "klingon"}, "language", "invalid"),
    ],
)
def test_note_with_a_bad_value_is_refused_with_its_field(
    alice: User, values: dict[str, Any], field: str, code: str
) -> None:
    note = note_create(owner=alice)
    for write in (note_create, lambda **kwargs: note_update(note_id=note.pk, **kwargs)):
        with pytest.raises(NoteInvalid) as caught:
            write(owner=alice, **values)
        assert (caught.value.field, caught.value.code) == (field, code)
    assert Note.objects.count() == 1
    assert reread(note).version == 1


def test_note_update_changes_only_what_is_given(alice: User) -> None:
    note = note_create(owner=alice, title="T", content="c", folder="f", tags=["x"])
    changed = note_update(owner=alice, note_id=note.pk, tags=["Y"])
    assert (changed.title, changed.content, changed.folder) == ("T", "c", "/f/")
    assert (changed.tags, changed.tags_folded, changed.version) == (["Y"], ["y"], 2)
    assert changed.updated > note.updated
    assert changed.created == note.created


@pytest.mark.parametrize(
    ("mode", "content"), [("replace", "new"), ("append", "oldnew"), ("prepend", "newold")]
)
def test_note_update_joins_content_exactly(alice: User, mode: Any, content: str) -> None:
    note = note_create(owner=alice, content="old")
    changed = note_update(owner=alice, note_id=note.pk, content="new", mode=mode)
    assert changed.content == content == reread(note).content


@pytest.mark.parametrize(
    "same",
    [{}, {"title": "T", "content": "c", "folder": "/", "tags": ["X"]},
     {"content": "", "mode": "append"}],
)  # fmt: skip
def test_note_update_to_what_is_there_is_no_change(alice: User, same: dict[str, Any]) -> None:
    note = note_create(owner=alice, title="T", content="c", tags=["X"])
    after = note_update(owner=alice, note_id=note.pk, **same)
    assert (after.version, after.updated) == (1, note.updated)


def test_note_update_of_a_tags_spelling_is_a_change(alice: User) -> None:
    note = note_create(owner=alice, tags=["water"])
    assert note_update(owner=alice, note_id=note.pk, tags=["Water"]).version == 2


def test_note_is_refused_when_too_large_and_stays_as_it_was(alice: User) -> None:
    full = note_create(owner=alice, content="é" * (MAX_CONTENT_BYTES // 2))
    for mode in ("append", "prepend"):
        with pytest.raises(NoteTooLarge):
            note_update(owner=alice, note_id=full.pk, title="no", content="x", mode=mode)
    with pytest.raises(NoteTooLarge):
        note_update(owner=alice, note_id=full.pk, content="x" * (MAX_CONTENT_BYTES + 1))
    with pytest.raises(NoteTooLarge):
        note_create(owner=alice, content="é" * (MAX_CONTENT_BYTES // 2) + "x")
    after = reread(full)
    assert (after.version, after.title, len(after.content)) == (1, "", MAX_CONTENT_BYTES // 2)


def test_note_edit_is_refused_when_too_large_and_stays_as_it_was(alice: User) -> None:
    note = note_create(owner=alice, content="b" + "a" * (MAX_CONTENT_BYTES - 1))
    with pytest.raises(NoteTooLarge):
        note_edit(owner=alice, note_id=note.pk, old_text="b", new_text="bb")
    assert reread(note).version == 1


def test_note_size_is_kept_by_the_database_too(alice: User) -> None:
    note = note_create(owner=alice)
    with pytest.raises(IntegrityError, match="note_content_size"):
        Note.objects.filter(pk=note.pk).update(content="x" * (MAX_CONTENT_BYTES + 1))


def test_note_update_of_another_version_is_refused_with_the_current_one(alice: User) -> None:
    note = note_create(owner=alice, content="milk")
    note_update(owner=alice, note_id=note.pk, title="a", expected_version=1)
    writes: list[Callable[..., object]] = [
        lambda **kwargs: note_update(title="b", **kwargs),
        lambda **kwargs: note_edit(old_text="milk", new_text="eggs", **kwargs),
        note_delete,
    ]
    for write in writes:
        with pytest.raises(NoteVersionConflict) as caught:
            write(owner=alice, note_id=note.pk, expected_version=1)
        assert caught.value.current_version == 2
    assert (reread(note).title, reread(note).version) == ("a", 2)


def test_note_edit_replaces_the_one_match(alice: User) -> None:
    note = note_create(owner=alice, content="ä milk\nä eggs")
    changed = note_edit(owner=alice, note_id=note.pk, old_text="ä milk", new_text="")
    assert (changed.content, changed.version) == ("\nä eggs", 2)
    changed = note_edit(owner=alice, note_id=note.pk, old_text="ä eggs", new_text="%s \\1 tea")
    assert changed.content == "\n%s \\1 tea"


@pytest.mark.parametrize(
    ("content", "old_text", "matches"),
    [("aaa", "aa", 2), ("a b a", "a", 2), ("abc", "B", 0), ("", "x", 0), ("50%", "_0%", 0)],
)
def test_note_edit_is_refused_unless_there_is_one_match(
    alice: User, content: str, old_text: str, matches: int
) -> None:
    note = note_create(owner=alice, content=content)
    with pytest.raises(NotePassageError) as caught:
        note_edit(owner=alice, note_id=note.pk, old_text=old_text, new_text="new")
    assert caught.value.matches == matches
    assert reread(note).content == content


def test_note_edit_of_nothing_is_refused(alice: User) -> None:
    note = note_create(owner=alice, content="a")
    with pytest.raises(NoteInvalid) as caught:
        note_edit(owner=alice, note_id=note.pk, old_text="", new_text="new")
    assert caught.value.field == "old_text"


@pytest.mark.thorough
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.text("ab\n", max_size=8), old=st.text("abé", min_size=1, max_size=3),
    after=st.text("ab\n", max_size=8), new=st.text("abé", max_size=3),
)  # fmt: skip
def test_note_edit_agrees_with_python(
    alice: User, before: str, old: str, after: str, new: str
) -> None:
    content = before + old + after
    starts = [i for i in range(len(content)) if content.startswith(old, i)]
    note = note_create(owner=alice, content=content)
    try:
        edited = note_edit(owner=alice, note_id=note.pk, old_text=old, new_text=new).content
    except NotePassageError:
        assert len(starts) > 1
    else:
        assert starts == [len(before)]
        assert edited == before + new + after


def test_note_in_the_bin_is_gone_from_everything(alice: User) -> None:
    note = note_create(owner=alice, title="T", content="milk")
    note_delete(owner=alice, note_id=note.pk)
    assert reread(note).deleted is not None
    assert not note_list(owner=alice).exists()
    for change in CHANGES.values():
        with pytest.raises(NoteNotFound):
            change(alice, note.pk)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_note_of_another_person_and_a_missing_one_are_the_same(
    alice: User, mallory: User, change: Callable[[User, UUID], object]
) -> None:
    note = note_create(owner=alice, title="T", content="milk")
    said = []
    for wanted in (note.pk, uuid4()):
        with pytest.raises(NoteNotFound) as caught:
            change(mallory, wanted)
        said.append(caught.value.message)
    assert said[0] == said[1]
    assert reread(note).version == 1
    assert reread(note).deleted is None


def test_note_create_records_its_source(alice: User) -> None:
    conversation = Conversation.objects.create(owner=alice)
    message = Message.objects.create(conversation=conversation, role="user")
    note = note_create(
        owner=alice, source_conversation_id=conversation.pk, source_message_id=message.pk
    )
    stored = reread(note)
    assert (stored.source_conversation, stored.source_message) == (conversation, message)
    conversation.delete()
    stored = reread(note)
    assert (stored.source_conversation, stored.source_message) == (None, None)


def test_note_source_of_another_person_and_a_missing_one_are_the_same(
    alice: User, mallory: User
) -> None:
    conversation = Conversation.objects.create(owner=alice)
    message = Message.objects.create(conversation=conversation, role="user")
    foreign_of: dict[str, Any] = {"source_conversation": conversation, "source_message": message}
    for field, foreign in foreign_of.items():
        said = []
        for source in (foreign.pk, uuid4()):
            values: dict[str, Any] = {f"{field}_id": source}
            with pytest.raises(NoteInvalid) as caught:
                note_create(owner=mallory, **values)
            said.append((caught.value.field, caught.value.message))
        assert said == [(field, said[0][1])] * 2
    assert not Note.objects.exists()


def test_note_append_never_brings_the_content_to_python_to_join_it(alice: User) -> None:
    note = note_create(owner=alice, content="old")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        note_update(owner=alice, note_id=note.pk, content="new", mode="append")
    (update,) = [each["sql"] for each in queries if each["sql"].startswith('UPDATE "notes_note"')]
    assert "oldnew" not in update


def at_once(*works: Callable[[], object]) -> list[object]:
    """Run each in a thread with a connection of its own; what they raised, or None."""
    ready = Barrier(len(works))

    def run(work: Callable[[], object]) -> object:
        ready.wait(timeout=10)
        try:
            work()
        except NoteError as error:
            return error
        finally:
            connection.close()
        return None

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(run, works))


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_note_appends_at_once_are_all_kept() -> None:
    owner = User.objects.create_user("alice")
    note = note_create(owner=owner)

    def append(text: str) -> Callable[[], object]:
        return lambda: [
            note_update(owner=owner, note_id=note.pk, content=text, mode="append")
            for _ in range(10)
        ]

    assert at_once(*map(append, "abcd")) == [None] * 4
    after = reread(note)
    assert (sorted(after.content), after.version) == (sorted("abcd" * 10), 41)


@pytest.mark.django_db(transaction=True)
def test_note_changes_at_once_of_one_version_let_one_through() -> None:
    owner = User.objects.create_user("alice")
    note = note_create(owner=owner)

    def change(title: str) -> Callable[[], object]:
        return lambda: note_update(owner=owner, note_id=note.pk, title=title, expected_version=1)

    results = at_once(*map(change, "abcd"))
    assert results.count(None) == 1
    assert {type(each) for each in results if each} == {NoteVersionConflict}
    assert reread(note).version == 2


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_note_appends_at_once_never_pass_the_limit() -> None:
    owner = User.objects.create_user("alice")
    note = note_create(owner=owner, content="x" * (MAX_CONTENT_BYTES - 1))

    def append() -> object:
        return note_update(owner=owner, note_id=note.pk, content="y", mode="append")

    results = at_once(append, append, append)
    assert results.count(None) == 1
    assert {type(each) for each in results if each} == {NoteTooLarge}
