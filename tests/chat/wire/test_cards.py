"""A card cannot be spoofed: plain text, with everything that cannot be seen made visible."""

import re
import unicodedata
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from chat.loop.folding import FoldedApproval
from chat.wire.cards import approval_shown, argument_fields, card_shown, visible


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
    name = "chat/decided.html" if shown.decision else "chat/approval.html"
    return render_to_string(name, {"approval": shown})


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
        {"arguments": {"a": [EVIL]}},
        {"arguments": {EVIL.replace("\u202e", ""): EVIL.replace("\u202e", "")}, "because": EVIL},
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


def test_card_of_a_new_text_says_nothing_of_its_place():
    html = card(preview={"text": "Make it.", "diff": "@@ -0,0 +1,2 @@\n+a\n+@@ -0,0 +1 @@"})
    assert "@@ -0,0 +1,2 @@" not in html
    assert '<span class="added">+a</span><span class="added">+@@ -0,0 +1 @@</span>' in html


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


def test_decided_card_tells_what_was_changed():
    html = card(decision="approved", by="ada", edited={"title": "B", "tags": ["x"]})
    assert "Approved by ada with a change of title, tags" in html
    assert "&quot;B&quot;" in html


def test_arguments_are_fields_of_their_kind():
    arguments = {"title": "A\n<b>", "limit": 5, "tags": ["ä"], "hidden": "a\u200bb"}
    fields = [(each.name, each.value, each.is_text) for each in argument_fields("x", arguments)]
    assert fields == [
        ("limit", "5", False),
        ("tags", '[\n  "ä"\n]', False),
        ("title", "A\n<b>", True),
    ]
    html = card(arguments=arguments)
    assert re.findall(r"<label for=[^>]*>([^<]*)<", html)[:3] == [
        "title",
        "tags (JSON)",
        "limit (JSON)",
    ]
    assert "\nA\n&lt;b&gt;</textarea>" in html


def test_arguments_that_are_too_long_are_not_offered_to_be_changed():
    assert argument_fields("x", {"title": "x" * 100_001}) == ()
    assert "Change the arguments" not in card(arguments={"title": "x" * 100_001})


def test_card_is_made_of_what_waits():
    shown = [approval_shown(approval(), tool="a"), None]
    shown += [approval_shown(approval(decision="denied"), tool="b")]
    made = card_shown(UUID(int=7), shown)
    assert made is not None
    assert ([each.tool for each in made.approvals], made.together) == (["a"], False)
    assert card_shown(UUID(int=7), shown[1:]) is None


def test_order_of_arguments_is_the_tools_whatever_order_they_came_in():
    arguments = {"tags": [{"b": 1, "a": 2}], "content": "C", "title": "A"}
    other = {"title": "A", "tags": [{"a": 2, "b": 1}], "content": "C"}
    assert card(arguments=arguments) == card(arguments=other)
    names = [each.name for each in argument_fields("note_create", arguments)]
    assert names == ["title", "content", "tags"]
