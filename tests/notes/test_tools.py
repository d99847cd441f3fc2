from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from accounts.models import User
from chat.models import Conversation, Message, ToolCall
from notes import tools
from notes.models import Note, NoteRevision, NoteSeen
from notes.selectors import note_get
from tests.notes.writing import note_create, note_delete, note_update
from tools.definitions import Outcome, ToolContext, ToolOutput
from tools.exceptions import ToolError
from tools.invocation import invoke
from tools.policy import Policy
from tools.registry import registry
from tools.text import RESULT_BYTES, compact_json

LONG = "".join(f"line {number}: “quoted” \\ 日本\n" for number in range(2000))


@pytest.fixture
def context(alice: User) -> ToolContext:
    """A call of Alice's, in a conversation of hers."""
    conversation = Conversation.objects.create(owner=alice)
    message = Message.objects.create(conversation=conversation, role="assistant")
    return ToolContext(
        user_id=alice.pk,
        deadline=math.inf,
        conversation_id=conversation.pk,
        message_id=message.pk,
    )


def of(user: User) -> ToolContext:
    return ToolContext(user_id=user.pk, deadline=math.inf)


def body(output: ToolOutput) -> dict[str, Any]:
    text = compact_json(output.content)
    assert len(text.encode()) <= RESULT_BYTES
    result: dict[str, Any] = json.loads(text)
    return result


def touched(output: ToolOutput) -> list[tuple[str, str, str]]:
    return [(each.kind, each.id, each.title) for each in output.touched]


def read_whole(context: ToolContext, note: Note) -> str:
    text, offset = "", 0
    while True:
        part = body(tools.note_read(context, note.pk, offset=offset))
        assert part["offset"] == offset == len(text)
        text += str(part["content"])
        if part["next_offset"] is None:
            return text
        offset = part["next_offset"]


def test_note_create_makes_a_note_that_knows_where_it_came_from(
    alice: User, context: ToolContext
) -> None:
    output = tools.note_create(context, title="Groceries", content="- milk", tags=["food"])
    note = Note.objects.get()
    assert body(output) == {
        "id": str(note.pk),
        "title": "Groceries",
        "folder": "/",
        "version": 1,
        "total_characters": 6,
    }
    assert touched(output) == [("note", str(note.pk), "Groceries")]
    assert note.owner == alice
    assert (note.source_conversation_id, note.source_message_id) == (
        context.conversation_id,
        context.message_id,
    )


def test_note_create_without_a_conversation_has_no_source(alice: User) -> None:
    tools.note_create(of(alice), title="T")
    assert Note.objects.get().source_conversation is None


def test_note_search_gives_excerpts_and_what_it_touched(alice: User, context: ToolContext) -> None:
    note = note_create(owner=alice, title="", content="Milk, eggs", folder="a", tags=["x"])
    output = tools.note_search(context, "milk")
    result = body(output)
    assert (result["total"], result["total_is"], result["next_offset"]) == (1, "exact", None)
    (row,) = result["results"]
    assert (row["id"], row["excerpt"], row["found_by"]) == (str(note.pk), "Milk, eggs", "words")
    assert output.summary == "1 result"
    assert touched(output) == [("note", str(note.pk), "Untitled")]
    assert tools.note_search(context, "nothing").summary == "0 results"


def test_note_search_narrows_by_folder_and_tags(alice: User, context: ToolContext) -> None:
    note_create(owner=alice, title="1", content="milk", folder="a/b", tags=["x"])
    note_create(owner=alice, title="2", content="milk")
    for narrowed in ({"folder": "a"}, {"tags": ["X"]}):
        results = body(tools.note_search(context, "milk", **narrowed))["results"]
        assert [row["title"] for row in results] == ["1"]


def test_lists_go_on_where_a_result_was_full(alice: User, context: ToolContext) -> None:
    for number in range(7):
        tags = [f"{number}{'日' * 90}{tag}" for tag in range(9)]
        note_create(owner=alice, title=f"{number}" + "é" * 499, content="milk", tags=tags)
    for call, name in (
        (lambda offset: tools.note_search(context, "milk", offset=offset), "results"),
        (lambda offset: tools.note_list(context, offset=offset), "notes"),
    ):
        seen: list[str] = []
        offset: int | None = 0
        calls = 0
        while offset is not None:
            result = body(call(offset))
            seen += [row["title"][0] for row in result[name]]
            offset, calls = result["next_offset"], calls + 1
        assert seen == ["6", "5", "4", "3", "2", "1", "0"]
        assert 1 < calls < 7


def test_note_list_has_the_last_changed_first_without_texts(
    alice: User, context: ToolContext
) -> None:
    note_create(owner=alice, title="1", content="milk", folder="a/b", tags=["x"])
    note_create(owner=alice, title="2", content="é")
    output = tools.note_list(context, limit=1)
    result = body(output)
    assert (result["total"], result["next_offset"], output.summary) == (2, 1, "2 notes")
    (row,) = result["notes"]
    assert (row["title"], row["bytes"], row["version"]) == ("2", 2, 1)
    assert "milk" not in str(body(tools.note_list(context)))
    for narrowed in ({"folder": "a"}, {"tags": ["X"]}):
        assert body(tools.note_list(context, **narrowed))["total"] == 1
    assert body(tools.note_list(context, folder="a", subfolders=False))["total"] == 0


def test_note_read_says_how_much_there_is_and_which_version(
    alice: User, context: ToolContext
) -> None:
    note = note_create(owner=alice, title="T", content="0123456789")
    output = tools.note_read(context, note.pk, offset=2, limit=3)
    result = body(output)
    assert (result["content"], result["offset"], result["next_offset"]) == ("234", 2, 5)
    assert (result["total_characters"], result["version"]) == (10, 1)
    assert touched(output) == [("note", str(note.pk), "T")]
    assert body(tools.note_read(context, note.pk, offset=10))["content"] == ""
    with pytest.raises(ToolError, match="10 characters"):
        tools.note_read(context, note.pk, offset=11)


@pytest.mark.parametrize("text", ["", "x", LONG, '\x01\n"' * 9000, "😀" * 9000])
def test_note_read_gives_the_whole_text_in_parts_that_fit(
    alice: User, context: ToolContext, text: str
) -> None:
    tags = [f"{number}{'日' * 95}" for number in range(64)]
    note = note_create(
        owner=alice, title="é" * 500, content=text, folder="/".join(["日" * 30] * 32), tags=tags
    )
    assert read_whole(context, note) == text


@pytest.mark.parametrize(
    ("mode", "old_text", "text"),
    [("append", None, "oldnew"), ("prepend", None, "newold"), ("edit", "ld", "onew")],
)
def test_note_update_changes_a_note_it_never_read(
    alice: User, context: ToolContext, mode: Any, old_text: str | None, text: str
) -> None:
    note = note_create(owner=alice, title="T", content="old")
    output = tools.note_update(context, note.pk, mode, "new", old_text=old_text)
    assert note_get(owner=alice, note_id=note.pk).content == text
    assert (body(output)["version"], body(output)["total_characters"]) == (2, len(text))
    assert touched(output) == [("note", str(note.pk), "T")]
    assert output.summary == f"{mode} “T”, version 2"


def test_note_update_replaces_only_what_was_read_whole(alice: User, context: ToolContext) -> None:
    note = note_create(owner=alice, content=LONG)

    def refused() -> bool:
        try:
            tools.note_update(context, note.pk, "replace", "short")
        except ToolError as error:
            assert "note_read" in str(error)
            return True
        return False

    assert refused()
    first = body(tools.note_read(context, note.pk))
    assert refused()
    tools.note_read(context, note.pk, offset=first["next_offset"] + 1, limit=len(LONG))
    tools.note_read(context, note.pk, offset=len(LONG) - 1)
    assert refused()
    assert note_get(owner=alice, note_id=note.pk).content == LONG
    assert read_whole(context, note) == LONG
    assert not refused()
    assert note_get(owner=alice, note_id=note.pk).content == "short"
    assert not refused()


def test_note_update_does_not_replace_what_changed_since_it_was_read(
    alice: User, context: ToolContext
) -> None:
    note = note_create(owner=alice, content="old")
    read_whole(context, note)
    note_update(owner=alice, note_id=note.pk, content=" hers", mode="append")
    with pytest.raises(ToolError, match="version 2"):
        tools.note_update(context, note.pk, "replace", "new")
    read_whole(context, note)
    tools.note_update(context, note.pk, "replace", "new")
    assert note_get(owner=alice, note_id=note.pk).content == "new"


def test_note_update_knows_what_this_conversation_wrote(alice: User, context: ToolContext) -> None:
    tools.note_create(context, title="T", content="old")
    note = Note.objects.get()
    tools.note_update(context, note.pk, "append", " more")
    tools.note_update(context, note.pk, "edit", "OLD", old_text="old")
    tools.note_update(context, note.pk, "prepend", "")
    tools.note_update(context, note.pk, "replace", "new")
    assert note_get(owner=alice, note_id=note.pk).content == "new"
    other = Conversation.objects.create(owner=alice)
    elsewhere = ToolContext(user_id=alice.pk, deadline=math.inf, conversation_id=other.pk)
    for stranger_to_it in (elsewhere, of(alice)):
        with pytest.raises(ToolError, match="read whole"):
            tools.note_update(stranger_to_it, note.pk, "replace", "lost")


def test_note_update_after_a_part_was_read_is_no_knowledge_of_the_whole(
    alice: User, context: ToolContext
) -> None:
    note = note_create(owner=alice, content="0123456789")
    tools.note_read(context, note.pk, limit=5)
    tools.note_update(context, note.pk, "append", "x")
    tools.note_read(context, note.pk, offset=5)
    with pytest.raises(ToolError, match="read whole"):
        tools.note_update(context, note.pk, "replace", "lost")


@pytest.mark.parametrize(
    ("mode", "options", "advice"),
    [
        ("edit", {}, "needs old_text"),
        ("replace", {"old_text": "a"}, "mode edit"),
        ("edit", {"old_text": "x"}, "exactly"),
        ("edit", {"old_text": "a"}, "around"),
        ("append", {"expected_version": 7}, "version 1"),
        ("replace", {"expected_version": 7}, "version 1"),
    ],
)
def test_note_update_says_what_to_do_and_changes_nothing(
    alice: User, context: ToolContext, mode: Any, options: dict[str, Any], advice: str
) -> None:
    note = note_create(owner=alice, content="a b a")
    with pytest.raises(ToolError, match=advice):
        tools.note_update(context, note.pk, mode, "new", **options)
    after = note_get(owner=alice, note_id=note.pk)
    assert (after.content, after.version) == ("a b a", 1)


def test_note_tools_say_which_argument_is_wrong(alice: User, context: ToolContext) -> None:
    with pytest.raises(ToolError, match="folder: "):
        tools.note_create(context, title="T", folder="..")
    with pytest.raises(ToolError, match="tags: "):
        tools.note_create(context, title="T", tags=["\n"])
    with pytest.raises(ToolError, match="folder: "):
        tools.note_search(context, "x", folder="..")
    with pytest.raises(ToolError, match=r"bytes.*another note"):
        tools.note_create(context, title="T", content="x" * (5 * 1024 * 1024 + 1))
    assert not Note.objects.exists()


def test_note_tools_work_as_the_user_and_no_other(
    alice: User, mallory: User, context: ToolContext
) -> None:
    note = note_create(owner=alice, title="hers", content="milk")
    read_whole(context, note)
    said: dict[str, list[str]] = {}
    for wanted in (note.pk, uuid4()):
        for call in (
            lambda note_id: tools.note_read(of(mallory), note_id),
            lambda note_id: tools.note_update(of(mallory), note_id, "append", "x"),
            lambda note_id: tools.note_update(of(mallory), note_id, "replace", "x"),
            lambda note_id: tools.note_update(of(mallory), note_id, "edit", "x", old_text="milk"),
        ):
            with pytest.raises(ToolError) as caught:
                call(wanted)
            said.setdefault("no such note", []).append(str(caught.value))
    assert len(set(said["no such note"])) == 1
    assert body(tools.note_search(of(mallory), "milk"))["total"] == 0
    assert body(tools.note_list(of(mallory)))["total"] == 0
    after = note_get(owner=alice, note_id=note.pk)
    assert (after.content, after.version) == ("milk", 1)


def test_note_create_refuses_the_conversation_of_another(
    mallory: User, context: ToolContext
) -> None:
    foreign = ToolContext(
        user_id=mallory.pk, deadline=math.inf, conversation_id=context.conversation_id
    )
    with pytest.raises(ToolError, match="source"):
        tools.note_create(foreign, title="T")
    assert not Note.objects.exists()


@pytest.mark.parametrize("name", ["note_create", "note_search", "note_list"])
def test_note_tools_do_nothing_for_nobody(alice: User, name: str) -> None:
    alice.is_active = False
    alice.save()
    for user_id in (alice.pk, alice.pk + 1000):
        with pytest.raises(ToolError, match="not active"):
            getattr(tools, name)(ToolContext(user_id=user_id, deadline=math.inf), "x")
    assert not Note.objects.exists()


def test_note_tools_find_nothing_in_the_bin(
    alice: User, mallory: User, context: ToolContext
) -> None:
    note = note_create(owner=alice, content="milk")
    note_delete(owner=alice, note_id=note.pk)
    assert body(tools.note_search(context, "milk"))["total"] == 0
    assert body(tools.note_list(context))["total"] == 0
    for call in (
        lambda context: tools.note_read(context, note.pk),
        lambda context: tools.note_update(context, note.pk, "append", "eggs"),
        lambda context: tools.note_update(context, note.pk, "replace", "eggs"),
        lambda context: tools.note_update(context, note.pk, "edit", "eggs", old_text="milk"),
    ):
        with pytest.raises(ToolError, match="is in the bin. Only the user can restore it"):
            call(context)
        with pytest.raises(ToolError, match="no such note"):
            call(of(mallory))
    assert Note.objects.get().content == "milk"


def test_note_tools_say_which_call_changed_a_note(alice: User, context: ToolContext) -> None:
    message = Message.objects.get()
    calls = [
        ToolCall.objects.create(
            owner=alice,
            conversation_id=message.conversation_id,
            message=message,
            position=position,
            call_id=f"call_{position}",
        )
        for position in range(3)
    ]
    created, appended, edited = (replace(context, call_id=call.call_id) for call in calls)
    tools.note_create(created, title="T", content="milk")
    note = Note.objects.get()
    tools.note_update(appended, note.pk, "append", "\neggs")
    tools.note_update(edited, note.pk, "edit", "tea", old_text="milk")
    revisions = NoteRevision.objects.order_by("version")
    assert [revision.tool_call_id for revision in revisions] == [call.pk for call in calls]
    assert {(each.author_kind, each.via, each.user_id) for each in revisions} == {
        ("assistant", "tool", alice.pk)
    }


def test_note_tools_commit_nothing_when_their_time_is_over(alice: User) -> None:
    with pytest.raises(ToolError, match="too long"):
        tools.note_create(ToolContext(user_id=alice.pk, deadline=time.monotonic()), title="late")
    assert not Note.objects.exists()


def test_note_seen_ends_with_its_conversation(context: ToolContext) -> None:
    tools.note_create(context, title="T")
    assert NoteSeen.objects.count() == 1
    Conversation.objects.all().delete()
    assert NoteSeen.objects.count() == 0
    assert Note.objects.count() == 1


async def test_note_tools_are_found_and_run_by_name(units: None, alice: User) -> None:
    async def call(name: str, **arguments: object) -> Outcome:
        return await invoke(
            name=name, arguments=json.dumps(arguments), context=of(alice), policy=Policy()
        )

    made = await call("note_create", title="Groceries", content="milk and eggs")
    found = await call("note_search", query="egg")
    assert [made.status, found.status] == ["done", "done"]
    (row,) = json.loads(found.content)["results"]
    assert UUID(row["id"]) == UUID(json.loads(made.content)["id"])
    wrong = await call("note_read", note_id="not an id")
    assert wrong.is_error
    assert "note_id" in wrong.content
    no_mode = await call("note_update", note_id=row["id"], content="x")
    assert no_mode.is_error
    assert "mode: required" in no_mode.content


def test_note_tools_are_writes_only_where_they_write() -> None:
    effects = {each.name: each.effect for each in registry.tools() if each.name.startswith("note_")}
    assert effects == {
        "note_create": "write",
        "note_list": "read",
        "note_read": "read",
        "note_search": "read",
        "note_update": "write",
    }
