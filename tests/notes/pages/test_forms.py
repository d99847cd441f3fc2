"""The note form: how a line of tags is read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notes.pages.forms import tags_read, tags_written
from notes.tags import tags_normalised


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("a, b,c ,, ", ["a", "b", "c"]),
        ('"a, b", c', ["a, b", "c"]),
        ('"say ""hi"", then", c', ['say "hi", then', "c"]),
        ('5" disk, c', ['5" disk', "c"]),
        ('"open, c', ['"open', "c"]),
        ('"a" b, c', ['"a" b', "c"]),
        ("", []),
    ],
)
def test_tags_stand_between_commas_or_in_quotes(line: str, tags: list[str]) -> None:
    assert tags_read(line) == tags


@given(st.lists(st.text(st.sampled_from('ab ,"') | st.characters(codec="utf-8"), max_size=9)))
def test_tags_of_a_note_are_read_as_they_were_written(tags: list[str]) -> None:
    allowed = [tag for tag in tags if tag.isprintable()]
    shown = tags_normalised(allowed[:64]).shown
    assert tags_read(tags_written(shown)) == shown
