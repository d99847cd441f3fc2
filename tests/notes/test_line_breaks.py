"""Line breaks that a browser made alike come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notes.line_breaks import line_breaks_alike, line_breaks_kept

texts = st.lists(st.sampled_from(["a", "b", "\r\n", "\n", "\r", "é"]), max_size=20).map("".join)


@pytest.mark.parametrize(
    ("before", "sent", "after"),
    [
        ("a\r\nb", "a\r\nc", "a\r\nc"),
        ("a\r\nb", "a\r\nb\r\nc", "a\r\nb\r\nc"),
        ("a\nb\r\nc\r\nd", "a\r\nx\r\ny\r\nc\r\nd", "a\nx\r\ny\r\nc\r\nd"),
        ("a\nb", "a\r\nc\r\n", "a\nc\n"),
        ("a\rb\rc", "a\r\nc", "a\rc"),
        ("", "a\r\nb", "a\nb"),
        ("a\r\n", "", ""),
        ("\ra\n", "\r\n\r\n", "\n\n"),
    ],
)
def test_lines_keep_their_breaks(before, sent, after):
    assert line_breaks_kept(before, sent) == after


@given(texts)
def test_text_that_was_only_sent_comes_back_as_it_was(text):
    assert line_breaks_kept(text, line_breaks_alike(text).replace("\n", "\r\n")) == text


@given(texts, texts)
def test_nothing_but_line_breaks_differs_from_what_was_sent(before, sent):
    kept = line_breaks_kept(before, sent)
    assert line_breaks_alike(kept) == line_breaks_alike(sent)
    if "\r" not in before:
        assert "\r" not in kept
