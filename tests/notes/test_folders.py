from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notes.exceptions import NoteInvalid
from notes.folders import MAX_LENGTH, MAX_SEGMENTS, folder_normalised

NAMES = st.text(alphabet=st.sampled_from("aA/ .\\é\u0301_%\u00a0\x00\n日"), max_size=30) | st.text()


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("", "/"),
        ("/", "/"),
        ("///", "/"),
        (" / ", "/"),
        ("a", "/a/"),
        ("a.b", "/a.b/"),
        (" a ", "/a/"),
        ("a//b", "/a/b/"),
        ("/ a / b /", "/a/b/"),
        ("a b/c", "/a b/c/"),
        ("A", "/A/"),
        ("50%", "/50%/"),
        ("...", "/.../"),
        ("e\u0301", "/\u00e9/"),
    ],
)
def test_folder_has_one_stored_form(written: str, stored: str) -> None:
    assert folder_normalised(written) == stored


@pytest.mark.parametrize(
    "written",
    [
        "/a/../b",
        "..",
        "./a",
        "a/ . /b",
        "a\\b",
        "a\nb",
        "a\x7f",
        "a\u2028b",
        "\ud800",
        "a\x85",
        "/\u202e\u200b/a",
    ],
)
def test_folder_is_refused_with_its_field(written: str) -> None:
    with pytest.raises(NoteInvalid) as caught:
        folder_normalised(written)
    assert caught.value.field == "folder"
    assert caught.value.code == "invalid"


def test_folder_with_nul_is_refused_with_its_own_code() -> None:
    with pytest.raises(NoteInvalid) as caught:
        folder_normalised("a\x00b")
    assert caught.value.code == "null_character"


def test_folder_limits_are_exact() -> None:
    assert folder_normalised("/".join("a" * MAX_SEGMENTS)) == "/a" * MAX_SEGMENTS + "/"
    assert len(folder_normalised("x" * (MAX_LENGTH - 2))) == MAX_LENGTH
    for written in ("/".join("a" * (MAX_SEGMENTS + 1)), "x" * (MAX_LENGTH - 1), "x" * 5_000_000):
        with pytest.raises(NoteInvalid):
            folder_normalised(written)


@given(NAMES)
def test_folder_is_refused_or_stays_as_it_is_once_normalised(written: str) -> None:
    try:
        stored = folder_normalised(written)
    except NoteInvalid:
        return
    assert folder_normalised(stored) == stored
    assert unicodedata.is_normalized("NFC", stored)
    assert stored.startswith("/")
    assert stored.endswith("/")
    names = stored.split("/")[1:-1]
    assert all(name == name.strip() and name not in {".", ".."} for name in names)
    assert stored == "/" or all(names)
