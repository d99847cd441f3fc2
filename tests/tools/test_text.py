import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.text import RESULT_BYTES, capped, clean, clean_json, compact_json

any_text = st.text(st.characters(exclude_categories=())) | st.text("\0\ud83d\ude00a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("ä😀", "ä😀"),
        ("a\0b", "ab"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\0\ude00", "😀"),
        ("x\ud83dy", "x�y"),
        ("\ude00", "�"),
        ("\ud83d", "�"),
    ],
)
def test_clean_joins_pairs_and_replaces_what_is_alone(text, expected):
    assert clean(text) == expected


@given(any_text)
def test_clean_is_fit_for_a_column_and_changes_nothing_twice(text):
    once = clean(text)
    once.encode()
    assert "\0" not in once
    assert clean(once) == once


def test_clean_json_reaches_every_string():
    value = {"a\0": ("\ud800", {"b": ["\0c"]}), 1: None}
    assert clean_json(value) == {"a": ["�", {"b": ["c"]}], 1: None}


def test_compact_json_knows_the_values_of_rows():
    value = {"id": UUID(int=1), "at": datetime(2026, 1, 2, tzinfo=UTC), "text": "é\0"}
    assert compact_json(value) == (
        '{"id":"00000000-0000-0000-0000-000000000001","at":"2026-01-02T00:00:00Z","text":"é"}'
    )


def test_compact_json_refuses_what_json_cannot_say():
    with pytest.raises(ValueError, match="not JSON compliant"):
        compact_json({"a": float("nan")})


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.integers(30, 60))
def test_capped_keeps_a_whole_beginning_and_counts_the_rest(text, limit):
    shown = capped(text, limit)
    assert len(shown.encode()) <= limit
    if len(text.encode()) <= limit:
        assert shown == text
        return
    kept = shown[: shown.rindex("[truncated ")]
    assert text.startswith(kept)
    assert shown == f"{kept}[truncated {len(text.encode()) - len(kept.encode())} bytes]"


@pytest.mark.parametrize("letter", ["a", "ü", "中", "😀"])
def test_capped_wastes_less_than_a_character_and_a_digit(letter):
    text = letter * RESULT_BYTES
    assert capped(letter * (RESULT_BYTES // len(letter.encode()))).count(letter) == (
        RESULT_BYTES // len(letter.encode())
    )
    assert RESULT_BYTES - 5 <= len(capped(text).encode()) <= RESULT_BYTES


def test_capped_result_is_stored_as_json_without_growing_unreadable():
    assert json.loads(json.dumps(capped("😀" * 10_000))).startswith("😀")
