"""docs/api.md lists every code that an error may have, with the status it really has."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("web", "accounts", "notes", "chat")


def documented():
    page = (ROOT / "docs" / "api.md").read_text()
    for row in re.findall(r"^\| (`[a-z_`, ]+`) \| (\d{3}) \|", page, re.MULTILINE):
        for code in re.findall(r"`(\w+)`", row[0]):
            yield code, row[1]


def test_every_code_that_is_raised_is_documented_with_its_status():
    raised = {
        found
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for found in re.findall(
            r'ApiError\(\s*"(\w+)",[^()]*?\b(\d{3})\b', path.read_text(), re.DOTALL
        )
    }
    assert ("idempotency_key_reused", "422") in set(documented())
    assert ("csrf_failed", "403") in raised
    assert raised <= set(documented())
