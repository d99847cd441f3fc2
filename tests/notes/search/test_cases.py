"""What must be found and what must not, for each kind of text, language and query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from notes.search import search
from tests.notes.writing import note_create

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['note']} / {case['query']}")
@pytest.mark.parametrize("place", ["title", "content"])
def test_case_is_found_or_not(alice: User, case: dict[str, Any], place: str) -> None:
    values: dict[str, Any] = {place: case["note"]}
    note = note_create(owner=alice, language=case["language"], **values)
    hits = search(owner=alice, query=case["query"], typing=case["as_you_type"]).hits
    assert [hit.note_id for hit in hits] == [note.pk] * case["found"]
