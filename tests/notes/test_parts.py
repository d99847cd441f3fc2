"""Parts of a long note: all of it, in order, each short enough, cut where it harms least."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notes import parts
from notes.parts import markdown_of, part_at, part_of, parts_of

texts = st.lists(st.sampled_from(["a", "word ", "\r\n", "\n", "\n\n", "é"]), max_size=120)


@pytest.fixture(autouse=True, scope="module")
def _small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "WHOLE", 40)
        patch.setattr(parts, "PART", 16)
        yield


@given(texts.map("".join))
def test_parts_are_all_of_the_text_and_cut_no_line_break(text):
    found = parts_of(text)
    assert "".join(text[part.start : part.end] for part in found) == text
    assert [part.number for part in found] == list(range(1, len(found) + 1))
    assert {part.count for part in found} == {len(found)}
    if len(text) <= 40:
        assert len(found) == 1
        return
    for part in found:
        assert 0 < part.end - part.start <= 16
        assert text[part.end - 1 : part.end + 1] != "\r\n"
        assert part_at(text, part.start) == part_at(text, part.end - 1) == part


def test_part_ends_with_a_paragraph_or_a_line_where_it_can():
    assert parts_of("aaaaaaaaaa\nb\n\nc\nd" + "e" * 40)[0].end == 14
    assert parts_of("aaaaaaaaaaaaaa\nc" + "e" * 40)[0].end == 15


def test_number_that_no_part_has_gives_the_nearest():
    text = "a" * 50
    assert [part_of(text, number=n).number for n in (0, 1, 4, 99)] == [1, 1, 4, 4]


def test_part_that_begins_in_a_code_block_is_shown_as_one():
    text = "~~~\n" + "x = 1\n" * 10 + "~~~\n" + "text\n" * 9
    second, last = part_of(text, number=2), part_of(text, number=99)
    assert markdown_of(text, second).startswith("~~~\nx = 1\n")
    assert markdown_of(text, last).startswith("text\n")
