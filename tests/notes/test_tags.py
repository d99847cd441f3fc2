from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notes.exceptions import NoteInvalid
from notes.tags import MAX_LENGTH, MAX_TAGS, tag_folded, tags_normalised

TAGS = st.lists(
    st.text(alphabet=st.sampled_from("aAßẞſsİiıΣσς \u0301éÉ\n\x00"), max_size=6)
    | st.text(max_size=20),
    max_size=10,
)


def test_tags_keep_the_first_spelling_and_drop_later_ones() -> None:
    tags = tags_normalised(["Water", " water ", "WATER", "", "  ", "Café", "cafe\u0301", "tea"])
    assert tags.shown == ["Water", "Café", "tea"]
    assert tags.folded == ["water", "café", "tea"]


@pytest.mark.parametrize("tag", ["a\nb", "\x1b", "\ud800", "x" * (MAX_LENGTH + 1), "x" * 10**6])
def test_tag_is_refused_with_its_field(tag: str) -> None:
    with pytest.raises(NoteInvalid) as caught:
        tags_normalised(["fine", tag])
    assert caught.value.field == "tags"


def test_tag_with_nul_is_refused_with_its_own_code() -> None:
    with pytest.raises(NoteInvalid) as caught:
        tags_normalised(["a\x00"])
    assert caught.value.code == "null_character"


def test_tags_limits_are_exact() -> None:
    assert len(tags_normalised(str(n) for n in range(MAX_TAGS)).shown) == MAX_TAGS
    assert tags_normalised(["x" * MAX_LENGTH]).shown == ["x" * MAX_LENGTH]
    with pytest.raises(NoteInvalid):
        tags_normalised(str(n) for n in range(MAX_TAGS + 1))


@given(TAGS)
def test_tags_are_refused_or_stay_as_they_are_once_normalised(written: list[str]) -> None:
    try:
        tags = tags_normalised(written)
    except NoteInvalid:
        return
    assert tags_normalised(tags.shown) == tags
    assert len(set(tags.folded)) == len(tags.folded) == len(tags.shown)
    assert [tag_folded(tag) for tag in tags.shown] == tags.folded


@given(st.text(max_size=20))
def test_tag_is_the_same_in_either_case(tag: str) -> None:
    assert tag_folded(tag_folded(tag)) == tag_folded(tag)
    assert tag_folded(tag.casefold()) == tag_folded(tag)
