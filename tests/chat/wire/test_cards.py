"""A card cannot be spoofed: plain text, with everything that cannot be seen made visible."""

import unicodedata
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from chat.loop.folding import FoldedApproval
from chat.wire.cards import approval_shown, visible


def approval(**changes) -> FoldedApproval:
    values: dict[str, Any] = {
        "id": UUID(int=6),
        "arguments": {"title": "A"},
        "preview": {"text": "Make it.", "diff": "@@ -1 +1 @@\n-a\n+b\n c"},
        "effect": "write",
        "because": "in careful mode every change is asked for",
        "scopes": ("once", "conversation", "always"),
        "expires_at": datetime(2026, 12, 7, tzinfo=UTC),
    }
    return FoldedApproval(**(values | changes))


def card(tool="note_create", **changes) -> str:
    shown = approval_shown(approval(**changes), tool=tool)
    return render_to_string("chat/approval.html", {"approval": shown})


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("safe\u202eevil", "safe⟨U+202E⟩evil"),
        ("a\u200bb\u2060c\ufeff", "a⟨U+200B⟩b⟨U+2060⟩c⟨U+FEFF⟩"),
        ("\u2066x\u2069", "⟨U+2066⟩x⟨U+2069⟩"),
        ("a\u3164b\u2800", "a⟨U+3164⟩b⟨U+2800⟩"),
        ("bell\x07 del\x7f line\u2028end\r", "bell⟨U+0007⟩ del⟨U+007F⟩ line⟨U+2028⟩end⟨U+000D⟩"),
        ("käse\n\t日本 🎉", "käse\n\t日本 🎉"),
    ],
)
def test_visible_shows_what_cannot_be_seen(text, seen):
    assert visible(text) == seen


@given(st.text())
def test_visible_leaves_nothing_unseen_and_nothing_out(text):
    seen = visible(text)
    assert not any(unicodedata.category(c) in {"Cf", "Zl", "Zp", "Cs"} for c in seen)
    assert visible(seen) == seen
    assert len(seen) >= len(text)


EVIL = "</pre><form action=//evil><b>\u202e**bold**"


@pytest.mark.parametrize(
    "changes",
    [
        {"preview": {"text": EVIL, "diff": f"+{EVIL}"}},
        {"arguments": {EVIL: EVIL}},
        {"because": EVIL},
        {"decision": "denied", "reason": EVIL, "by": EVIL},
        {"decision": "approved", "edited": {"a": EVIL}},
        {"tool": EVIL},
    ],
)
def test_card_shows_hostile_text_as_text(changes):
    html = card(**changes)
    assert "<b>" not in html
    assert "//evil>" not in html
    assert html.count("</pre>") == html.count("<pre")
    assert "\u202e" not in html
    assert "⟨U+202E⟩" in html
    assert "**bold**" in html


def test_card_shows_each_line_of_the_diff_as_what_it_is():
    html = card()
    assert '<span class="removed">-a</span><span class="added">+b</span>' in html
    assert '<span class="place">@@ -1 +1 @@</span>' in html
    assert '<span class="same"> c</span>' in html


def test_card_offers_only_what_helps_and_says_what_cannot_be_undone():
    html = card(scopes=("once",), effect="external")
    assert "approve-always" not in html
    assert "approve-conversation" not in html
    assert "cannot be undone" in html
    assert "cannot be undone" not in card()
    assert all(f'value="{word}"' in card() for word in ("approve", "approve-always", "deny"))


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ("approved", "Approved by ada"),
        ("denied", "Denied by ada"),
        ("expired", "No longer awaited"),
    ],
)
def test_decided_card_has_no_buttons(decision, words):
    html = card(decision=decision, by="" if decision == "expired" else "ada")
    assert words in html
    assert "<button" not in html
