"""Thinking in tags, however the deltas are cut."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.providers.assembly import Assembler
from chat.providers.sse import EventDecoder
from chat.providers.think_tags import ThinkTags
from chat.types import Completion, TextDelta, ThinkingDelta

STREAM = Path(__file__).parent / "streams" / "dq-think-tags.sse"


def split(pieces):
    """Thinking and text of these deltas, which agree with those of the completion."""
    tags = ThinkTags()
    out = [delta for piece in pieces for delta in tags.take([TextDelta(piece)])]
    out += tags.close()
    completion = tags.complete(Completion(text="".join(pieces)))
    thinking = "".join(delta.text for delta in out if isinstance(delta, ThinkingDelta))
    text = "".join(delta.text for delta in out if isinstance(delta, TextDelta))
    assert (completion.thinking, completion.text) == (thinking, text)
    return thinking, text


CASES = [
    ("<think>Deep</think>Blue", ("Deep", "Blue")),
    ("\n<think>\nDeep\n</think>\n\nBlue\n", ("Deep\n", "Blue\n")),
    ("<think></think>Blue", ("", "Blue")),
    ("<think>\n\n</think>\n\nBlue", ("", "Blue")),
    ("<think>Deep", ("Deep", "")),
    ("<think>Deep</thin", ("Deep</thin", "")),
    ("<think>a < b </ c</think>d", ("a < b </ c", "d")),
    ("<think>a</think>b<think>c</think>", ("a", "b<think>c</think>")),
    ("Use <think>x</think>", ("", "Use <think>x</think>")),
    ("<thinking>x", ("", "<thinking>x")),
    ("  <thi", ("", "  <thi")),
    ("", ("", "")),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_tags_are_split_whole_and_character_by_character(text, expected):
    assert split([text]) == expected
    assert split(list(text)) == expected


@given(st.sampled_from(CASES), st.lists(st.integers(0, 40), max_size=5))
def test_tags_are_split_in_any_cutting(case, cuts):
    text, expected = case
    cuts = sorted(min(cut, len(text)) for cut in cuts)
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert split(pieces) == expected


def test_recorded_stream_is_split_as_written_beside_it():
    expected = json.loads(STREAM.with_suffix(".json").read_text())
    assembler, tags = Assembler(), ThinkTags()
    tags.take(assembler.feed(EventDecoder().feed(STREAM.read_bytes())))
    tags.close()
    completion = tags.complete(assembler.complete())
    assert completion.thinking == expected["thinking_if_tags_parsed"]
    assert completion.text == expected["text_if_tags_parsed"]
