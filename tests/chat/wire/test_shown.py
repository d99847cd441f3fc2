"""The line of a call: what a person reads of it before they open it."""

from uuid import UUID

import pytest

from chat.loop.folding import FoldedCall
from chat.wire.shown import call_shown


@pytest.mark.parametrize(
    ("name", "arguments", "subject"),
    [
        ("note_update", '{"note_id": "%s", "mode": "append", "content": "tea"}', "tea"),
        ("note_create", '{"title": "Groceries"}', "Groceries"),
        ("no_tool", '{"mode": "append", "id": "%s"}', "append"),
        ("note_update", '["append"]', ""),
    ],
)
def test_line_of_a_call_names_what_it_is_about(name, arguments, subject):
    arguments = arguments.replace("%s", str(UUID(int=1)))
    call = FoldedCall(id="c1", name=name, arguments=arguments)
    assert call_shown(call, message_id=UUID(int=2), position=0).subject == subject
