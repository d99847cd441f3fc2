from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from chat.models import Conversation, Message, Run, ToolCall
from notes import services
from notes.authors import Author
from notes.exceptions import NoteError, NoteTooLarge
from notes.history import revision_get, revision_list
from notes.models import Change, Note, NoteRevision
from notes.recording import FOLDED_WITHIN
from notes.rules import MAX_CONTENT_BYTES
from tests.notes.test_services import at_once
from tests.notes.writing import by, note_create, note_update

STATE = ("title", "content", "folder", "tags", "language")


def changes_of(note: Note) -> list[tuple[int, str]]:
    rows = NoteRevision.objects.filter(note=note).order_by("version")
    return list(rows.values_list("version", "change"))


def text_at(owner: User, note: Note, version: int) -> str:
    return revision_get(owner=owner, note_id=note.pk, version=version).text


def minute_passes() -> None:
    for revision in NoteRevision.objects.all():
        revision.created -= FOLDED_WITHIN
        revision.save(update_fields=["created"])


def tool_of(user: User) -> Author:
    return Author(kind="assistant", user=user, via="tool")


def test_change_keeps_the_state_before_it_and_who_made_it(alice: User) -> None:
    note = note_create(owner=alice, title="T", content="milk", folder="a", tags=["x"])
    token_id = uuid4()
    author = Author(
        kind="person", user=alice, via="rest", token_id=token_id, token_name="my script"
    )
    services.note_update(
        owner=alice, author=author, note_id=note.pk, content="eggs", language="german"
    )
    newest, first = revision_list(owner=alice, note_id=note.pk)
    assert (first.version, first.change, first.via, first.token_id) == (1, "created", "page", None)
    assert (newest.version, newest.change, newest.via) == (2, "edited", "rest")
    assert (newest.token_id, newest.token_name) == (token_id, "my script")
    assert {each.user_id for each in (newest, first)} == {alice.pk}
    assert [text_at(alice, note, version) for version in (1, 2)] == ["milk", "eggs"]
    assert (first.title, first.folder, first.tags, first.language) == ("T", "/a/", ["x"], "")
    assert newest.language == "german"


def test_note_whose_beginning_nobody_recorded_keeps_it_at_the_first_change(alice: User) -> None:
    note = Note.objects.create(owner=alice, title="old", content="milk", version=7)
    assert changes_of(note) == []
    note_update(owner=alice, note_id=note.pk, content="eggs")
    assert changes_of(note) == [(7, "before"), (8, "edited")]
    before = revision_get(owner=alice, note_id=note.pk, version=7)
    assert (before.text, before.title, before.created) == ("milk", "old", note.updated)
    assert (before.user_id, before.via) == (None, "")


def test_text_is_stored_once_whatever_else_changes(alice: User) -> None:
    note = note_create(owner=alice, content="milk")
    for number in range(3):
        services.note_update(owner=alice, author=tool_of(alice), note_id=note.pk, title=str(number))
    stored = NoteRevision.objects.filter(content__isnull=False)
    assert not stored.exists()
    services.note_update(owner=alice, author=tool_of(alice), note_id=note.pk, content="eggs")
    assert list(stored.values_list("version", "content")) == [(4, "milk")]
    assert [text_at(alice, note, version) for version in range(1, 6)] == ["milk"] * 4 + ["eggs"]


def test_text_never_comes_to_python_to_be_kept(alice: User) -> None:
    note = note_create(owner=alice, content="a rather long text")
    with CaptureQueriesContext(connection) as queries:
        note_update(owner=alice, note_id=note.pk, content="!", mode="append")
    writes = [each["sql"] for each in queries if not each["sql"].startswith("SELECT")]
    assert not any("rather long" in sql for sql in writes)
    assert text_at(alice, note, 1) == "a rather long text"


def test_quick_edits_of_one_person_are_one_revision(alice: User) -> None:
    note = note_create(owner=alice, content="a")
    for text in "bcd":
        note_update(owner=alice, note_id=note.pk, content=text)
    assert changes_of(note) == [(1, "created"), (4, "edited")]
    assert [text_at(alice, note, version) for version in (1, 4)] == ["a", "d"]
    minute_passes()
    note_update(owner=alice, note_id=note.pk, content="e")
    assert changes_of(note) == [(1, "created"), (4, "edited"), (5, "edited")]
    assert text_at(alice, note, 4) == "d"


def test_quick_edit_of_text_after_one_of_the_title_keeps_the_text_before_both(
    alice: User,
) -> None:
    note = note_create(owner=alice, title="T", content="a")
    note_update(owner=alice, note_id=note.pk, title="U")
    note_update(owner=alice, note_id=note.pk, content="b")
    first = revision_get(owner=alice, note_id=note.pk, version=1)
    assert (first.title, first.text) == ("T", "a")
    assert changes_of(note) == [(1, "created"), (3, "edited")]


def test_minute_begins_with_the_first_edit_and_does_not_move_on(alice: User) -> None:
    note = note_create(owner=alice, content="a")
    note_update(owner=alice, note_id=note.pk, content="b")
    NoteRevision.objects.filter(version=2).update(
        created=note.created - FOLDED_WITHIN + timedelta(seconds=20)
    )
    note_update(owner=alice, note_id=note.pk, content="c")
    NoteRevision.objects.filter(version=3).update(created=note.created - FOLDED_WITHIN)
    note_update(owner=alice, note_id=note.pk, content="d")
    assert [version for version, _ in changes_of(note)] == [1, 3, 4]


@pytest.mark.parametrize(
    "other",
    [
        lambda alice: Author.person(alice, "rest"),
        lambda alice: Author(kind="person", user=alice, via="page", token_id=uuid4()),
        lambda alice: Author(kind="assistant", user=alice, via="page"),
        lambda alice: Author.person(User.objects.create_user("bob"), "page"),
    ],
)
def test_quick_edit_by_another_or_through_another_door_is_a_revision_of_its_own(
    alice: User, other: Callable[[User], Author]
) -> None:
    note = note_create(owner=alice, content="a")
    note_update(owner=alice, note_id=note.pk, content="b")
    services.note_update(owner=alice, author=other(alice), note_id=note.pk, content="c")
    assert changes_of(note) == [(1, "created"), (2, "edited"), (3, "edited")]


@pytest.mark.parametrize("via", ["tool", "import", "admin"])
def test_changes_of_tools_and_imports_never_fold(alice: User, via: Any) -> None:
    note = note_create(owner=alice, content="a")
    author = Author(kind="person", user=alice, via=via)
    for text in "bc":
        services.note_update(owner=alice, author=author, note_id=note.pk, content=text)
    assert [version for version, _ in changes_of(note)] == [1, 2, 3]


def test_services_cannot_be_called_without_saying_who() -> None:
    changing = [
        service
        for name, service in inspect.getmembers(services, inspect.isfunction)
        if service.__module__ == services.__name__
        and "owner" in inspect.signature(service).parameters
        and not name.startswith("_")
        # What checks stores nothing.
        and not name.endswith("_checked")
    ]
    assert len(changing) >= 6
    for service in changing:
        author = inspect.signature(service).parameters["author"]
        assert (author.kind, author.default) == (author.KEYWORD_ONLY, author.empty)


def test_only_recording_writes_revisions() -> None:
    root = Path(services.__file__).parent
    writes = re.compile(r"NoteRevision\.objects[^\n]*\.(create|bulk_create|update|delete)\(")
    found = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if writes.search(file.read_text())
    }
    assert found == {"recording.py"}


@pytest.mark.django_db(transaction=True)
def test_changes_at_once_are_each_a_revision() -> None:
    owner = User.objects.create_user("alice")
    note = note_create(owner=owner)

    def append(text: str) -> Callable[[], object]:
        return lambda: [
            services.note_update(
                owner=owner, author=tool_of(owner), note_id=note.pk, content=text, mode="append"
            )
            for _ in range(5)
        ]

    assert at_once(*map(append, "abc")) == [None] * 3
    texts = [state["content"] for state in replayed(note.pk)]
    assert [len(text) for text in texts] == list(range(16))
    for before, after in pairwise(texts):
        assert after.startswith(before)


def test_history_goes_with_its_owner_and_outlives_others(alice: User, mallory: User) -> None:
    note = note_create(owner=alice, content="a")
    by_mallory = Author.person(mallory, "page")
    services.note_update(owner=alice, author=by_mallory, note_id=note.pk, content="b")
    mallory.delete()
    assert [each.username for each in revision_list(owner=alice, note_id=note.pk)] == [
        None,
        "alice",
    ]
    alice.delete()
    assert not NoteRevision.objects.exists()


def test_change_that_is_none_is_no_revision(alice: User) -> None:
    note = note_create(owner=alice, title="T", content="a")
    note_update(owner=alice, note_id=note.pk, title="T", content="a", folder="/", tags=[])
    note_update(owner=alice, note_id=note.pk)
    services.revision_restore(owner=alice, author=by(alice), note_id=note.pk, version=1)
    services.note_restore(owner=alice, author=by(alice), note_id=note.pk)
    assert changes_of(note) == [(1, "created")]


def test_change_that_is_refused_leaves_no_trace(alice: User) -> None:
    note = Note.objects.create(owner=alice, content="x" * MAX_CONTENT_BYTES)
    with pytest.raises(NoteTooLarge):
        note_update(owner=alice, note_id=note.pk, content="y", mode="append")
    assert not NoteRevision.objects.exists()


def test_assistants_change_names_run_and_tool_call(alice: User) -> None:
    conversation = Conversation.objects.create(owner=alice)
    message = Message.objects.create(conversation=conversation, role="assistant")
    run = Run.objects.create(owner=alice, conversation=conversation, message=message)
    call = ToolCall.objects.create(
        owner=alice, conversation=conversation, message=message, position=0, call_id="call_1"
    )
    author = Author(
        kind="assistant",
        user=alice,
        via="tool",
        conversation_id=conversation.pk,
        run_id=run.pk,
        call_id="call_1",
    )
    note = services.note_create(owner=alice, author=author, content="a")
    (revision,) = revision_list(owner=alice, note_id=note.pk)
    assert (revision.author_kind, revision.via) == ("assistant", "tool")
    assert (revision.run_id, revision.tool_call_id) == (run.pk, call.pk)
    assert (revision.conversation_id, revision.message_id) == (conversation.pk, message.pk)
    conversation.delete()
    (revision,) = revision_list(owner=alice, note_id=note.pk)
    assert (revision.author_kind, revision.run_id, revision.conversation_id) == (
        "assistant",
        None,
        None,
    )


def test_call_and_run_of_another_person_or_conversation_are_not_named(
    alice: User, mallory: User
) -> None:
    conversation = Conversation.objects.create(owner=mallory)
    message = Message.objects.create(conversation=conversation, role="assistant")
    run = Run.objects.create(owner=mallory, conversation=conversation, message=message)
    ToolCall.objects.create(
        owner=mallory, conversation=conversation, message=message, position=0, call_id="call_1"
    )
    author = Author(
        kind="assistant",
        user=alice,
        via="tool",
        conversation_id=conversation.pk,
        run_id=run.pk,
        call_id="call_1",
    )
    services.note_create(owner=alice, author=author)
    revision = NoteRevision.objects.get()
    assert (revision.run_id, revision.tool_call_id) == (None, None)


TEXTS = st.sampled_from(["", "a", "b", "long " * 20])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "title": TEXTS,
        "content": TEXTS,
        "folder": st.sampled_from(["/", "/a/"]),
        "tags": st.lists(st.sampled_from(["x", "y"]), unique=True),
        "language": st.sampled_from(["", "german"]),
        "mode": st.sampled_from(["replace", "append", "prepend"]),
    },
)
STEPS: st.SearchStrategy[Any] = st.one_of(
    FIELDS.map(lambda fields: ("note_update", fields)),
    st.tuples(TEXTS, TEXTS).map(
        lambda pair: ("note_edit", {"old_text": pair[0], "new_text": pair[1]})
    ),
    st.just(("note_delete", {})),
    st.just(("note_restore", {})),
    st.integers(1, 12).map(lambda version: ("revision_restore", {"version": version})),
)
AUTHORS = st.tuples(
    st.sampled_from(["person", "assistant"]), st.sampled_from(["page", "rest", "tool"])
)


def replayed(note_id: UUID) -> list[dict[str, Any]]:
    """The states that the revisions alone tell, the oldest first, and the note's own at the end."""
    text = Note.objects.get(pk=note_id).content
    states = []
    for revision in NoteRevision.objects.filter(note_id=note_id):
        text = text if revision.content is None else revision.content
        fields = {name: getattr(revision, name) for name in ("version", *STATE)}
        states.append(fields | {"content": text, "change": revision.change})
    return states[::-1]


def take(step: Any, owner: User, note_id: UUID) -> None:
    """One call of a service, after a minute perhaps; what it refuses must change nothing."""
    (name, values), (kind, via), minute_passed = step
    if minute_passed:
        minute_passes()
    author = Author(kind=kind, user=owner, via=via)
    with suppress(NoteError):
        getattr(services, name)(owner=owner, author=author, note_id=note_id, **values)


@pytest.mark.thorough
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    recorded=st.booleans(), steps=st.lists(st.tuples(STEPS, AUTHORS, st.booleans()), max_size=12)
)
def test_revisions_replay_to_every_state_whatever_was_done(
    alice: User, recorded: bool, steps: list[Any]
) -> None:
    note = note_create(owner=alice, content="a") if recorded else Note.objects.create(owner=alice)
    states: dict[int, dict[str, Any]] = {}
    for step in [None, *steps]:
        if step is not None:
            take(step, alice, note.pk)
        now = Note.objects.get(pk=note.pk)
        states[now.version] = {name: getattr(now, name) for name in STATE}
    history = replayed(note.pk)
    if not recorded and now.version == 1:
        assert history == []
        return
    assert history[0]["version"] == 1
    assert history[-1]["version"] == now.version
    for revision in history:
        assert {name: revision[name] for name in STATE} == states[revision["version"]]
    if now.deleted is None:
        for revision in history:
            version = revision["version"]
            found = revision_get(owner=alice, note_id=note.pk, version=version)
            assert found.text == revision["content"]
    # Only an edit folds, and only into an edit: everything else is a revision of its own.
    kept = {revision["version"] for revision in history}
    follows = {revision["version"]: revision["change"] for revision in history}
    for version in states.keys() - kept:
        assert follows[min(later for later in kept if later > version)] == Change.EDITED
