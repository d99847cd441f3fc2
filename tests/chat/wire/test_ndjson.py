import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.events import CallShown, TextDelta, ToolUse, to_data
from chat.wire import ndjson
from tests.chat.wire.samples import DONE, EACH, FAILED, FIRST, RESULT, RUN, STARTED, STORY, logged


def lines(batch, **options):
    return [json.loads(line) for line in ndjson.encode(batch, **options).splitlines()]


def test_story_is_told_in_lines():
    told = lines(logged(*STORY))
    types = "THINKING THINKING CHAT CHAT TOOL_CALL TOOL_RESULT CHAT NOTICE DONE"
    assert [line["type"] for line in told] == types.split()
    said = "".join(line["text"] for line in told if line["type"] == "CHAT")
    assert said == "Making it.Made it."
    call, result = told[4], told[5]
    assert call == {
        "type": "TOOL_CALL",
        "name": "note_create",
        "args": {"title": "A"},
        "id": "call_1",
        "event": "1-8",
    }
    assert (result["id"], result["result"]) == ("call_1", RESULT.content)
    assert (result["is_error"], result["status"]) == (False, "done")


def test_lines_are_framed_to_the_letter():
    batch = logged(TextDelta(message_id=FIRST, text="a\nb\u2028"))
    assert ndjson.encode(batch) == b'{"type":"CHAT","text":"a\\nb\\u2028","event":"1-1"}\n'


@pytest.mark.parametrize("event", [FAILED, DONE], ids=lambda event: event.name)
def test_end_carries_all_that_the_event_says(event):
    [line] = lines(logged(event))
    assert line == {
        "type": "DONE" if event is DONE else "ERROR",
        **json.loads(json.dumps(to_data(event))),
        "event": "1-1",
    }


@pytest.mark.parametrize("arguments", ["", "{", "[1]", "null", "5", '{"a": NaN}', "[" * 5000])
def test_arguments_that_are_no_object_are_null(arguments):
    [line] = lines(logged(ToolUse(calls=(CallShown(id="c", name="t", arguments=arguments),))))
    assert line["args"] is None


def test_calls_of_one_event_can_be_resumed_after_only_once_all_were_told():
    calls = tuple(CallShown(id=f"c{n}", name="t", arguments="{}") for n in range(3))
    told = lines(logged(ToolUse(calls=calls)))
    assert [line["id"] for line in told] == ["c0", "c1", "c2"]
    assert [line.get("event") for line in told] == [None, None, "1-1"]


def test_only_what_was_interrupted_is_announced():
    assert lines(logged(STARTED)) == []
    assert lines(logged(STARTED, attempt=2)) == []  # as after a decision
    [line] = lines(logged(msgspec.structs.replace(STARTED, interrupted=True), attempt=2))
    assert (line["type"], line["code"], line["event"]) == ("NOTICE", "restarted", "2-1")


def test_ids_name_the_run_where_several_are_followed():
    told = lines(logged(*EACH), full_ids=True)
    assert all(line["event"].startswith(f"{RUN}.1-") for line in told)


@given(st.text())
def test_no_text_can_end_a_line(text):
    event = TextDelta(message_id=FIRST, text=text)
    [line] = ndjson.encode(logged(event)).decode().splitlines()
    assert json.loads(line)["text"] == text
