from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from chat.models import Conversation, Message, Run, ToolCall
from notes import services
from notes.authors import Author
from notes.exceptions import NoteError, NoteNotFound
from notes.models import Note, NoteRevision
from notes.undo import Undone, call_undo, calls_standing, run_undo
from tests.notes.test_recording import minute_passes
from tests.notes.test_services import at_once
from tests.notes.writing import by, note_create, note_delete, note_update

STATE = ("title", "content", "folder", "tags", "language")


@dataclass
class Assistant:
    """Runs of one conversation, each call a row of its own."""

    owner: User
    conversation: Conversation
    message: Message
    calls: list[ToolCall] = field(default_factory=list)

    @classmethod
    def of(cls, owner: User) -> Assistant:
        conversation = Conversation.objects.create(owner=owner)
        message = Message.objects.create(conversation=conversation, role="assistant")
        return cls(owner, conversation, message)

    def run(self) -> Run:
        Run.objects.filter(conversation=self.conversation).update(status="finished")
        return Run.objects.create(
            owner=self.owner, conversation=self.conversation, message=self.message
        )

    def call(self, run: Run) -> Author:
        """The author of one more call of ``run``."""
        position = len(self.calls)
        call = ToolCall.objects.create(
            owner=self.owner,
            conversation=self.conversation,
            message=self.message,
            position=position,
            call_id=f"call_{position}",
        )
        self.calls.append(call)
        return Author(
            kind="assistant",
            user=self.owner,
            via="tool",
            conversation_id=self.conversation.pk,
            run_id=run.pk,
            call_id=call.call_id,
        )


@pytest.fixture
def assistant(alice: User) -> Assistant:
    return Assistant.of(alice)


def state(note_id: UUID) -> dict[str, Any] | None:
    """What the note is, None in the bin."""
    note = Note.objects.get(pk=note_id)
    return None if note.deleted else {name: getattr(note, name) for name in STATE}


def undo(run: Run) -> Undone:
    return run_undo(owner=run.owner, run_id=run.pk, author=by(run.owner))


def undo_last_call(assistant: Assistant) -> Undone:
    owner = assistant.owner
    return call_undo(owner=owner, tool_call_id=assistant.calls[-1].pk, author=by(owner))


def edit(assistant: Assistant, run: Run, note: Note, **changes: Any) -> None:
    services.note_update(owner=run.owner, author=assistant.call(run), note_id=note.pk, **changes)


def create(assistant: Assistant, run: Run, **fields: Any) -> Note:
    return services.note_create(owner=run.owner, author=assistant.call(run), **fields)


def named(undone: Undone) -> tuple[list[str], list[tuple[str, str]]]:
    return (
        [each.title for each in undone.reverted],
        [(each.title, each.why) for each in undone.skipped],
    )


def test_everything_a_run_changed_goes_back_the_last_changed_first(
    alice: User, assistant: Assistant
) -> None:
    plan = note_create(owner=alice, title="Plan", content="a", folder="/x/", tags=["t"])
    gone = note_create(owner=alice, title="Gone", content="g")
    other = note_create(owner=alice, title="Other", content="o")
    before = [state(note.pk) for note in (plan, gone, other)]
    run = assistant.run()
    edit(assistant, run, plan, content="b", mode="append")
    edit(assistant, run, plan, title="Plan B", folder="/y/", tags=["u"], language="german")
    services.note_delete(owner=alice, author=assistant.call(run), note_id=gone.pk)
    new = create(assistant, run, title="New", content="n")
    edit(assistant, run, new, content="m")
    undone = undo(run)
    assert named(undone) == (["New", "Gone", "Plan"], [])
    assert [each.in_bin for each in undone.reverted] == [True, False, False]
    assert undone.message == "Undone in 3 notes."
    assert [state(note.pk) for note in (plan, gone, other)] == before
    assert state(new.pk) is None
    ends = [NoteRevision.objects.filter(note=note)[0].change for note in (plan, gone, new)]
    assert ends == ["restored", "undeleted", "deleted"]


@pytest.mark.django_db(transaction=True)
def test_undos_at_once_take_back_one_change_once() -> None:
    owner = User.objects.create_user("alice")
    assistant = Assistant.of(owner)
    run = assistant.run()
    notes = [create(assistant, run, title=str(number)) for number in range(3)]
    answers: list[Undone] = []
    assert at_once(*[lambda: answers.append(undo(run))] * 4) == [None] * 4
    assert sorted(len(answer.reverted) for answer in answers) == [0, 0, 0, 3]
    assert {Note.objects.get(pk=note.pk).version for note in notes} == {2}


def test_undo_twice_finds_nothing(alice: User, assistant: Assistant) -> None:
    note = note_create(owner=alice, content="a")
    run = assistant.run()
    edit(assistant, run, note, content="b")
    create(assistant, run, title="New")
    undo(run)
    revisions = NoteRevision.objects.count()
    again = undo(run)
    assert (again, again.message) == (Undone((), ()), "There is nothing to undo.")
    assert undo_last_call(assistant) == Undone((), ())
    assert NoteRevision.objects.count() == revisions


def test_run_that_changed_nothing_has_nothing_to_undo(assistant: Assistant) -> None:
    assert undo(assistant.run()).message == "There is nothing to undo."


def test_call_goes_back_alone(alice: User, assistant: Assistant) -> None:
    note = note_create(owner=alice, title="T", content="a")
    run = assistant.run()
    edit(assistant, run, note, content="b")
    edit(assistant, run, note, content="c")
    below = call_undo(owner=alice, tool_call_id=assistant.calls[0].pk, author=by(alice))
    assert named(below) == ([], [("T", "changed_by_assistant")])
    assert Note.objects.get(pk=note.pk).content == "c"
    undo_last_call(assistant)
    assert Note.objects.get(pk=note.pk).content == "b"
    call_undo(owner=alice, tool_call_id=assistant.calls[0].pk, author=by(alice))
    assert Note.objects.get(pk=note.pk).content == "a"


def test_note_that_a_person_changed_since_is_named_and_stays(
    alice: User, assistant: Assistant
) -> None:
    mine = note_create(owner=alice, title="Mine", content="a")
    free = note_create(owner=alice, title="Free", content="a")
    binned = note_create(owner=alice, title="Binned", content="a")
    run = assistant.run()
    for note in (mine, free, binned):
        edit(assistant, run, note, content="b")
    note_update(owner=alice, note_id=mine.pk, title="Mine!")
    note_delete(owner=alice, note_id=binned.pk)
    undone = undo(run)
    assert named(undone) == (["Free"], [("Binned", "in_bin"), ("Mine!", "changed_by_person")])
    assert undone.message == (
        "Undone. “Binned” stays. You deleted it since: it is in the bin."
        " “Mine!” stays. You changed it since."
    )
    assert Note.objects.get(pk=mine.pk).content == "b"
    assert state(binned.pk) is None


def test_changes_above_a_persons_go_back_and_those_below_stay(
    alice: User, assistant: Assistant
) -> None:
    note = note_create(owner=alice, title="T", content="a")
    run = assistant.run()
    edit(assistant, run, note, content="b")
    note_update(owner=alice, note_id=note.pk, content="c")
    edit(assistant, run, note, content="d")
    assert named(undo(run)) == (["T"], [("T", "changed_by_person")])
    assert Note.objects.get(pk=note.pk).content == "c"


def test_change_below_another_answers_stays_until_that_is_undone(
    alice: User, assistant: Assistant
) -> None:
    note = note_create(owner=alice, title="T", content="a")
    first, second = assistant.run(), assistant.run()
    edit(assistant, first, note, content="b")
    edit(assistant, second, note, content="c")
    assert named(undo(first)) == ([], [("T", "changed_by_assistant")])
    undo(second)
    assert named(undo(first)) == (["T"], [])
    assert Note.objects.get(pk=note.pk).content == "a"


def test_changes_that_cancel_out_are_undone_as_well(alice: User, assistant: Assistant) -> None:
    note = note_create(owner=alice, title="T", content="a")
    run = assistant.run()
    edit(assistant, run, note, content="b")
    edit(assistant, run, note, content="a")
    assert named(undo(run)) == (["T"], [])
    assert undo(run) == Undone((), ())


def test_undo_is_a_persons_revision_and_can_be_taken_back(
    alice: User, assistant: Assistant
) -> None:
    note = note_create(owner=alice, title="T", content="a")
    run = assistant.run()
    edit(assistant, run, note, content="b")
    run_undo(owner=alice, run_id=run.pk, author=Author.person(alice, "rest"))
    revision = NoteRevision.objects.filter(note=note).order_by("-version")[0]
    assert (revision.author_kind, revision.user, revision.via) == ("person", alice, "rest")
    assert (revision.change, revision.restored_version, revision.run) == ("restored", 1, None)
    call = assistant.calls[-1].pk
    assert calls_standing(owner=alice, tool_call_ids=[call]) == {call: "undone"}
    services.revision_restore(owner=alice, author=by(alice), note_id=note.pk, version=2)
    assert calls_standing(owner=alice, tool_call_ids=[call]) == {call: "possible"}
    assert named(undo(run)) == (["T"], [])


def test_undone_creation_that_is_taken_out_of_the_bin_stays(
    alice: User, assistant: Assistant
) -> None:
    run = assistant.run()
    note = create(assistant, run, title="New", content="n")
    call = assistant.calls[-1].pk
    undo(run)
    assert calls_standing(owner=alice, tool_call_ids=[call]) == {call: "undone"}
    services.note_restore(owner=alice, author=by(alice), note_id=note.pk)
    assert calls_standing(owner=alice, tool_call_ids=[call]) == {call: "taken_from_bin"}
    for _ in range(2):
        assert named(undo(run)) == ([], [("New", "taken_from_bin")])
        assert state(note.pk) is not None
    later = assistant.run()
    edit(assistant, later, note, content="m")
    assert named(undo(later)) == (["New"], [])
    assert named(undo(run)) == ([], [("New", "taken_from_bin")])


def test_note_that_a_person_deleted_and_took_back_can_be_undone(
    alice: User, assistant: Assistant
) -> None:
    run = assistant.run()
    note = create(assistant, run, title="New", content="n")
    note_delete(owner=alice, note_id=note.pk)
    services.note_restore(owner=alice, author=by(alice), note_id=note.pk)
    assert named(undo(run)) == (["New"], [])
    assert state(note.pk) is None


def test_only_calls_that_changed_notes_of_the_owner_are_told(
    alice: User, mallory: User, assistant: Assistant
) -> None:
    run = assistant.run()
    assistant.call(run)
    create(assistant, run)
    ids = [call.pk for call in assistant.calls]
    assert calls_standing(owner=alice, tool_call_ids=ids) == {ids[1]: "possible"}
    assert calls_standing(owner=mallory, tool_call_ids=ids) == {}


def test_call_is_told_why_it_cannot_be_undone_until_it_can_again(
    alice: User, assistant: Assistant
) -> None:
    def told() -> list[str]:
        ids = [call.pk for call in assistant.calls]
        found = calls_standing(owner=alice, tool_call_ids=ids)
        return [found[key] for key in ids]

    run = assistant.run()
    note = create(assistant, run, title="T", content="a")
    edit(assistant, run, note, content="b")
    assert told() == ["changed_by_assistant", "possible"]
    note_update(owner=alice, note_id=note.pk, content="mine")
    assert told() == ["changed_by_person"] * 2
    note_delete(owner=alice, note_id=note.pk)
    assert told() == ["in_bin"] * 2
    services.note_restore(owner=alice, author=by(alice), note_id=note.pk)
    services.revision_restore(owner=alice, author=by(alice), note_id=note.pk, version=2)
    assert told() == ["changed_by_assistant", "possible"]
    undo_last_call(assistant)
    assert told() == ["possible", "undone"]


def test_run_and_call_of_another_person_are_as_missing_ones(
    alice: User, mallory: User, assistant: Assistant
) -> None:
    run = assistant.run()
    note = create(assistant, run)
    for key in (run.pk, uuid4()):
        with pytest.raises(NoteNotFound):
            run_undo(owner=mallory, run_id=key, author=by(mallory))
    for key in (assistant.calls[0].pk, uuid4()):
        with pytest.raises(NoteNotFound):
            call_undo(owner=mallory, tool_call_id=key, author=by(mallory))
    assert state(note.pk) is not None


TEXTS = st.sampled_from(["", "a", "b", "milk\n", "long " * 20])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "title": TEXTS,
        "content": TEXTS,
        "folder": st.sampled_from(["/", "/a/"]),
        "tags": st.lists(st.sampled_from(["x", "y"]), unique=True),
        "mode": st.sampled_from(["replace", "append", "prepend"]),
    },
)
CHANGES: st.SearchStrategy[Any] = st.one_of(
    FIELDS.map(lambda fields: ("note_update", fields)),
    st.tuples(TEXTS, TEXTS).map(
        lambda pair: ("note_edit", {"old_text": pair[0], "new_text": pair[1]})
    ),
    st.just(("note_create", {"content": "new"})),
    st.just(("note_delete", {})),
)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["person", "run 0", "run 1"]), CHANGES),
    st.tuples(st.sampled_from(["person"]), st.just(("note_restore", {}))),
    st.tuples(st.just("undo"), st.sampled_from(["run 0", "run 1", "call"])),
    st.just(("minute passes", "")),
)


class Play:
    """Does steps, and keeps of each note the layers that it should be made of: by whom, what."""

    def __init__(self, owner: User) -> None:
        self.owner = owner
        self.assistant = Assistant.of(owner)
        self.runs = {f"run {number}": self.assistant.run() for number in range(2)}
        self.layers: dict[UUID, list[tuple[str, UUID | None, Any]]] = {}
        note = note_create(owner=owner, title="first", content="a")
        self.layers[note.pk] = [("person", None, state(note.pk))]

    def take(self, who: str, what: Any, which: int) -> None:
        if who == "minute passes":
            minute_passes()
        elif who == "undo":
            self.undo(what, which)
        else:
            self.change(who, what[0], what[1], list(self.layers)[which % len(self.layers)])

    def change(self, who: str, name: str, values: dict[str, Any], note_id: UUID) -> None:
        person = who == "person"
        author = by(self.owner) if person else self.assistant.call(self.runs[who])
        call = None if person else self.assistant.calls[-1].pk
        if name == "note_create":
            note = services.note_create(owner=self.owner, author=author, **values)
            self.layers[note.pk] = [(who, call, state(note.pk))]
            return
        version = Note.objects.get(pk=note_id).version
        with suppress(NoteError):
            getattr(services, name)(owner=self.owner, author=author, note_id=note_id, **values)
        if Note.objects.get(pk=note_id).version == version:
            return
        if name == "note_restore":
            self.layers[note_id].pop()
        else:
            self.layers[note_id].append((who, call, state(note_id)))

    def undo(self, what: str, which: int) -> None:
        calls = self.assistant.calls
        if what != "call":
            undone = undo(self.runs[what])
        elif calls:
            key = calls[which % len(calls)].pk
            undone = call_undo(owner=self.owner, tool_call_id=key, author=by(self.owner))
        else:
            return
        reverted, skipped = set(), set()
        for note_id, layers in self.layers.items():
            while layers and self.is_of(layers[-1], what, which):
                layers.pop()
                reverted.add(note_id)
            if any(self.is_of(layer, what, which) for layer in layers):
                skipped.add(note_id)
        assert {each.note_id for each in undone.reverted} == reverted
        assert {each.note_id for each in undone.skipped} == skipped
        for note_id in [key for key, layers in self.layers.items() if not layers]:
            assert state(note_id) is None
            del self.layers[note_id]

    def is_of(self, layer: tuple[str, UUID | None, Any], what: str, which: int) -> bool:
        if what != "call":
            return layer[0] == what
        calls = self.assistant.calls
        return layer[1] == calls[which % len(calls)].pk

    def told(self) -> Iterator[tuple[UUID, str]]:
        """What each call that changed a note should be told to be."""
        tops = {layer[1]: layers[-1] for layers in self.layers.values() for layer in layers}
        changed = NoteRevision.objects.filter(tool_call__isnull=False)
        for key in changed.values_list("tool_call_id", flat=True):
            assert key is not None
            if key not in tops:
                yield key, "undone"
                continue
            who, call, now = tops[key]
            by_person = "in_bin" if now is None else "changed_by_person"
            above = by_person if who == "person" else "changed_by_assistant"
            yield key, "possible" if call == key else above


@pytest.mark.thorough
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(STEPS, st.integers(0, 9)), max_size=14))
def test_undo_is_the_inverse_or_says_what_was_changed_since(alice: User, steps: list[Any]) -> None:
    NoteRevision.objects.all().delete()
    Note.objects.all().delete()
    play = Play(alice)
    for (who, what), which in steps:
        play.take(who, what, which)
        for note_id, layers in play.layers.items():
            assert state(note_id) == layers[-1][2]
    ids = [call.pk for call in play.assistant.calls]
    assert calls_standing(owner=alice, tool_call_ids=ids) == dict(play.told())
