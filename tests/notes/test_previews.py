"""What a person sees before a note is changed is what then happens to it, or nothing happens."""

from __future__ import annotations

import json
import math
import re
import time
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from chat.models import Conversation
from notes.models import Note
from notes.previews import preview_of_update
from tests.notes.writing import note_create, note_update
from tools.approval import Approved
from tools.definitions import Outcome, ToolContext
from tools.invocation import Described, describe, invoke
from tools.policy import Policy
from tools.threads import unit_of_work

pytestmark = pytest.mark.django_db

HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
CAREFUL = Policy(mode="careful")


def context(user: User) -> ToolContext:
    conversation = Conversation.objects.create(owner=user)
    return ToolContext(
        user_id=user.pk, deadline=time.monotonic() + 60, conversation_id=conversation.pk
    )


def shown(user: User, name: str, **arguments: Any) -> Described | Outcome:
    return describe(
        name=name, arguments=json.dumps(arguments), context=context(user), policy=CAREFUL
    )


def described(user: User, name: str, **arguments: Any) -> Described:
    found = shown(user, name, **arguments)
    assert isinstance(found, Described), found
    return found


def test_preview_of_a_new_note_shows_all_of_it(alice: User) -> None:
    found = described(alice, "note_create", title="Groceries", content="milk\neggs", tags=["food"])
    assert found.preview.text == "Make the note “Groceries” in / with the tags food."
    assert found.preview.diff == "@@ -0,0 +1,2 @@\n+milk\n+eggs"
    assert Note.objects.count() == 0


@pytest.mark.parametrize(
    ("mode", "more", "diff"),
    [
        ("append", {"content": "\nbread"}, "@@ -1,2 +1,3 @@\n milk\n eggs\n+bread"),
        ("prepend", {"content": "tea\n"}, "@@ -1,2 +1,3 @@\n+tea\n milk\n eggs"),
        (
            "edit",
            {"content": "oat milk", "old_text": "milk"},
            "@@ -1,2 +1,2 @@\n-milk\n+oat milk\n eggs",
        ),
    ],
)
def test_preview_of_a_change_is_its_diff(
    alice: User, mode: str, more: dict[str, str], diff: str
) -> None:
    note = note_create(owner=alice, title="Groceries", content="milk\neggs")
    found = described(alice, "note_update", note_id=str(note.pk), mode=mode, **more)
    assert found.preview.diff == diff
    assert "“Groceries”" in found.preview.text
    assert found.preview.version == "1"
    note.refresh_from_db()
    assert (note.version, note.content) == (1, "milk\neggs")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mode": "edit", "content": "x", "old_text": "tea"}, "Copy old_text exactly"),
        ({"mode": "edit", "content": "x", "old_text": "m"}, "Give more of the text"),
        ({"mode": "edit", "content": "x"}, "mode edit needs old_text"),
        ({"mode": "append", "content": "x", "old_text": "milk"}, "goes with mode edit"),
        ({"mode": "append", "content": "x", "expected_version": 9}, "Nothing was changed"),
        ({"mode": "replace", "content": "x"}, "was not read whole"),
    ],
)
def test_preview_of_what_would_fail_is_the_error(
    alice: User, arguments: dict[str, Any], words: str
) -> None:
    note = note_create(owner=alice, content="milk and mint")
    found = shown(alice, "note_update", note_id=str(note.pk), **arguments)
    assert isinstance(found, Outcome)
    assert words in found.content


def test_preview_of_a_strangers_note_says_what_a_missing_one_says(
    alice: User, mallory: User
) -> None:
    note = note_create(owner=mallory, content="secret")
    arguments = {"mode": "append", "content": "x"}
    foreign = shown(alice, "note_update", note_id=str(note.pk), **arguments)
    missing = shown(alice, "note_update", note_id=str(uuid4()), **arguments)
    assert isinstance(foreign, Outcome)
    assert isinstance(missing, Outcome)
    assert foreign.content == missing.content


@pytest.mark.usefixtures("units")
async def test_approved_change_is_of_the_version_that_was_shown(alice: User) -> None:
    def prepare() -> tuple[Note, Approved, str, ToolContext]:
        note = note_create(owner=alice, content="milk")
        arguments = {"note_id": str(note.pk), "mode": "append", "content": "!"}
        found = described(alice, "note_update", **arguments)
        approved = Approved(found.digest, found.preview.version)
        return note, approved, json.dumps(arguments), context(alice)

    def change(note: Note) -> None:
        note_update(owner=alice, note_id=note.pk, content="tea")

    note, approved, arguments, where = await unit_of_work(prepare)
    await unit_of_work(change, note)
    outcome = await invoke(
        name="note_update", arguments=arguments, context=where, policy=CAREFUL, approved=approved
    )
    assert "Nothing was changed" in outcome.content
    await unit_of_work(note.refresh_from_db)
    assert (note.content, note.version) == ("tea", 2)


@pytest.mark.parametrize(
    ("before", "after", "text", "diff"),
    [
        (
            "l1\nl2\nl3\n",
            "l1\nl2\nl3\nadded\n",
            "1 line added, 0 removed",
            "@@ -1,3 +1,4 @@\n l1\n l2\n l3\n+added",
        ),
        (
            "l1\nl2\nl3\n",
            "l1\nl2\nl3\nadded",
            "1 line added, 0 removed",
            "@@ -1,3 +1,4 @@\n l1\n l2\n l3\n+added",
        ),
        ("a\nb\n", "A\nb\n", "1 line added, 1 removed", "@@ -1,2 +1,2 @@\n-a\n+A\n b"),
        ("a\n", "", "0 lines added, 1 removed", "@@ -1 +0,0 @@\n-a"),
        ("", "a\n", "1 line added, 0 removed", "@@ -0,0 +1 @@\n+a"),
        ("a", "a\n", "only the line break at its end changes", None),
        ("a\n", "a", "only the line break at its end changes", None),
        ("a", "a", "0 lines added, 0 removed", None),
        ("a", "a\nb", "1 line added, 0 removed", "@@ -1 +1,2 @@\n a\n+b"),
        (
            "".join(f"{n}\n" for n in range(1, 21)),
            "".join(f"{n}\n" for n in range(1, 21) if n not in (2, 18)),
            "0 lines added, 2 removed",
            "@@ -1,5 +1,4 @@\n 1\n-2\n 3\n 4\n 5\n@@ -15,6 +14,5 @@\n 15\n 16\n 17\n-18\n 19\n 20",
        ),
    ],
)
def test_preview_shows_what_diff_shows(
    before: str, after: str, text: str, diff: str | None
) -> None:
    note = Note(title="", folder="/", content=before, version=1)
    found = preview_of_update(note=note, mode="replace", content=after, old_text="")
    assert found.diff == diff
    assert found.text.endswith(f": {text}.")


lines = st.lists(st.sampled_from(["", "a", "b", "c d", "é"]), max_size=8).map("\n".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines, lines)
def test_shown_diff_gives_the_new_text_from_the_old(before: str, after: str) -> None:
    note = Note(title="", folder="/", content=before, version=1)
    found = preview_of_update(note=note, mode="replace", content=after, old_text="")
    assert _patched(before, found.diff or "") == _lines(after)
    assert ("only the line break" in found.text) == (
        before != after and _lines(before) == _lines(after)
    )
    assert math.isfinite(int(found.version))


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _patched(text: str, diff: str) -> list[str]:
    """The lines of a text with the hunks of a diff put in the place of what they say was there."""
    old = _lines(text)
    new: list[str] = []
    at, left = 0, [0, 0]
    for line in diff.split("\n") if diff else []:
        if found := HEADER.fullmatch(line):
            assert left == [0, 0]
            left = [int(found[2] or 1), int(found[4] or 1)]
            start = int(found[1]) - (1 if left[0] else 0)
            new += old[at:start]
            at = start
            assert len(new) == int(found[3]) - (1 if left[1] else 0)
            continue
        sign = line[0]
        if sign != "+":
            assert old[at] == line[1:]
            at += 1
            left[0] -= 1
        if sign != "-":
            new.append(line[1:])
            left[1] -= 1
    assert left == [0, 0]
    return new + old[at:]
