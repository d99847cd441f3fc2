from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notes import diffs
from notes.diffs import FieldChange, Line, TextDiff, field_changes, text_diff
from notes.rules import MAX_CONTENT_BYTES
from tests.effort import growth

WORDS = [f"word{number}" for number in range(2000)]


def lines_of(text: str) -> list[str]:
    return text.split("\n") if text else []


def shown(diff: TextDiff) -> list[str]:
    """The lines of all hunks as a person reads them, what is marked in brackets."""
    signs = {"same": " ", "removed": "-", "added": "+"}
    return [signs[line.kind] + bracketed(line) for hunk in diff.hunks for line in hunk.lines]


def bracketed(line: Line) -> str:
    text, done = "", 0
    for start, end in line.marks:
        text += f"{line.text[done:start]}[{line.text[start:end]}]"
        done = end
    return text + line.text[done:]


def sentence(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(words))


def test_words_are_marked_inside_changed_lines_only() -> None:
    diff = text_diff("# Plan\n- milk\n- tea, cold", "# Plan\n- oat milk\n- tea, hot")
    assert shown(diff) == [
        " # Plan",
        "-- milk",
        "-- tea, [cold]",
        "+- [oat] milk",
        "+- tea, [hot]",
    ]
    assert (diff.detail, diff.added, diff.removed) == ("words", 2, 2)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("", "", []),
        ("same", "same", []),
        ("", "new", ["+new"]),
        ("old", "", ["-old"]),
        ("a", "a\nb", [" a", "+b"]),
        ("a\n", "a\nb\n", [" a", "+b", " "]),
        ("one two three four", "one 2 & 3 four", ["-one [two three] four", "+one [2 & 3] four"]),
        ("買い物の牛乳", "買い物の豆乳", ["-買い物の[牛]乳", "+買い物の[豆]乳"]),
        ("wholly different", "not alike at all", ["-wholly different", "+not alike at all"]),
        ("a\u2028b", "a\u2028c", ["-a\u2028[b]", "+a\u2028[c]"]),
        ("  indented", "indented", ["-  indented", "+indented"]),
        (
            "Dinner at eight.",
            "Dinner at eight, by the sea.\n\nWhat else?",
            ["-Dinner at eight.", "+Dinner at eight[, by the sea].", "+", "+What else?"],
        ),
        ("the old way home", "the new, way home", ["-the [old] way home", "+the [new,] way home"]),
    ],
)
def test_diff_of_small_texts(before: str, after: str, lines: list[str]) -> None:
    assert shown(text_diff(before, after)) == lines


def test_lines_far_from_a_change_are_left_out_and_numbers_say_where() -> None:
    before = [str(number) for number in range(1, 41)]
    after = ["new", *before[:19], "changed", *before[20:]]
    diff = text_diff("\n".join(before), "\n".join(after))
    first, second = diff.hunks
    assert (first.old_start, first.new_start, len(first.lines)) == (1, 1, 4)
    assert (second.old_start, second.new_start) == (17, 18)
    texts = [line.text for line in second.lines]
    assert texts == ["17", "18", "19", "20", "changed", "21", "22", "23"]


LINES = st.lists(
    st.sampled_from(["", "a", "b", "a b c", "a b d", "e f", *"ghijklmnop"]), max_size=30
)


@pytest.mark.parametrize("compared", [diffs.COMPARED_LINES, 6])
@given(before=LINES, after=LINES)
def test_diff_leads_from_one_text_to_the_other(
    compared: int, before: list[str], after: list[str]
) -> None:
    old, new = "\n".join(before), "\n".join(after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diffs, "COMPARED_LINES", compared)
        diff = text_diff(old, new)
    if diff.detail == "summary":
        assert compared < max(len(before), len(after))
        return
    result, at = [], 0
    for hunk in diff.hunks:
        result += lines_of(old)[at : hunk.old_start - 1]
        assert len(result) == hunk.new_start - 1
        was = [line.text for line in hunk.lines if line.kind != "added"]
        assert was == lines_of(old)[hunk.old_start - 1 :][: len(was)]
        result += [line.text for line in hunk.lines if line.kind != "removed"]
        at = hunk.old_start - 1 + len(was)
    result += lines_of(old)[at:]
    assert result == lines_of(new)
    assert diff.added - diff.removed == len(lines_of(new)) - len(lines_of(old))


@given(before=st.text(max_size=60), after=st.text(max_size=60))
def test_marks_are_ranges_inside_their_line(before: str, after: str) -> None:
    for hunk in text_diff(before, after).hunks:
        for line in hunk.lines:
            places = [place for mark in line.marks for place in mark]
            assert places == sorted(places)
            assert all(0 <= start < end <= len(line.text) for start, end in line.marks)


def test_lines_of_too_many_words_are_shown_without_marks() -> None:
    chance = random.Random(1)
    text = sentence(chance, diffs.LINE_WORDS)
    assert text_diff(text, f"{text}x").detail == "words"
    assert text_diff(text, f"{text} more").detail == "lines"
    many = "\n".join(sentence(chance, 100) for _ in range(105))
    diff = text_diff(many, many.replace("\n", " more\n") + " more")
    assert diff.detail == "lines"
    assert not any(line.marks for hunk in diff.hunks for line in hunk.lines)


def test_changes_far_from_each_other_in_many_lines_are_shown() -> None:
    lines = [f"line {number}" for number in range(3 * diffs.COMPARED_LINES)]
    before = "\n".join(lines)
    after = "\n".join(["new", *lines[:-1], "changed"])
    assert shown(text_diff(before, after)) == [
        "+new",
        " line 0",
        " line 1",
        " line 2",
        " line 29996",
        " line 29997",
        " line 29998",
        "-line 29999",
        "+changed",
    ]


def test_change_of_too_many_lines_or_characters_is_summed_up() -> None:
    many = "\n".join(map(str, range(diffs.COMPARED_LINES + 1)))
    assert text_diff("x\ny", many) == TextDiff("summary", added=diffs.COMPARED_LINES + 1, removed=2)
    long = "x" * (diffs.SHOWN_CHARACTERS + 1)
    assert text_diff("", long) == TextDiff("summary", added=1, removed=0)


HOSTILE = {
    "10,000 words in one line": lambda chance: sentence(chance, 10_000),
    "400 rewritten lines": lambda chance: "\n".join(sentence(chance, 25) for _ in range(400)),
    "10,000 rewritten lines": lambda chance: "\n".join(sentence(chance, 2) for _ in range(10_000)),
    "lines that repeat": lambda chance: "\n".join(chance.choice("ab") for _ in range(10_000)),
    "100 KB of brackets": lambda chance: chance.choice("[(") * 100_000,
    "5 MiB of rewritten lines": lambda chance: "\n".join(
        sentence(chance, 50) for _ in range(13_000)
    ),
    "many lines that are all there once": lambda chance: "\n".join(
        map(str, chance.sample(range(diffs.CHANGED_LINES), diffs.CHANGED_LINES))
    ),
    "5 MiB of line breaks": lambda chance: chance.choice("xyz") + "\n" * MAX_CONTENT_BYTES + "x",
    "5 MiB of one line": lambda chance: chance.choice("xyz") * MAX_CONTENT_BYTES,
}


@pytest.mark.thorough
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_compared_in_time_in_proportion(text) -> None:
    chance = random.Random(7)
    before, after = text(chance), text(chance)

    def compare(size: int) -> None:
        text_diff(before[:size], after[:size])

    assert growth(compare, max(len(before), len(after))) < 4


@dataclass
class Kept:
    title: str = "T"
    folder: str = "/"
    tags: list[str] = field(default_factory=list)
    language: str = ""


def test_field_changes_are_those_that_differ() -> None:
    assert field_changes(Kept(), Kept()) == ()
    assert field_changes(Kept(), Kept(title="U", tags=["x"])) == (
        FieldChange("title", "T", "U"),
        FieldChange("tags", [], ["x"]),
    )
