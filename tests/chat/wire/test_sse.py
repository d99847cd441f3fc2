import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.events import EVENTS, Notice, TextDelta, ToolResult, from_data, to_data
from chat.wire import sse
from tests.chat.wire.parser import parse
from tests.chat.wire.samples import EACH, FIRST, RUN, STORY, logged


def test_samples_hold_every_event():
    assert {event.name for event in EACH} == set(EVENTS)


@pytest.mark.parametrize("event", EACH, ids=lambda event: event.name)
def test_event_is_named_numbered_and_comes_back(event):
    [parsed] = parse(sse.encode(logged(event, attempt=2, first=17)))
    assert (parsed.name, parsed.id) == (event.name, "2-17")
    assert from_data(parsed.name, parsed.json) == event


def test_event_is_framed_to_the_letter():
    event = Notice(code="nudged", text="Asked\nagain.")
    assert sse.encode(logged(event)) == (
        b'event: notice\nid: 1-1\ndata: {"code":"nudged","text":"Asked\\nagain."}\n\n'
    )


def test_batch_is_one_piece_with_its_events_in_order():
    parsed = parse(sse.encode(logged(*STORY)))
    assert [event.name for event in parsed] == [event.name for event in STORY]
    assert [event.id for event in parsed] == [f"1-{seq}" for seq in range(1, len(STORY) + 1)]


def test_tool_use_is_an_array_and_tool_result_an_object():
    parsed = {event.name: event.json for event in parse(sse.encode(logged(*STORY)))}
    assert parsed["tool_use"] == [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "note_create", "arguments": '{"title": "A"}'},
        }
    ]
    result = parsed["tool_result"]
    assert result["tool_call_id"] == "call_1"
    assert (result["name"], result["content"]) == ("note_create", '{"id": "1"}')
    assert (result["is_error"], result["status"], result["duration_ms"]) == (False, "done", 12)


hostile = (
    st.text(st.sampled_from('a\n\r\x00\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029:{}"\\ ')) | st.text()
)


@given(hostile, st.booleans())
def test_no_text_can_forge_a_line(text, careless):
    result = ToolResult(
        tool_call_id="call_1",
        tool="note_read",
        content=f"{text}\n\nevent: done\ndata: {{}}\n\n",
        is_error=False,
        status="done",
        duration_ms=0,
    )
    stream = sse.encode(logged(TextDelta(message_id=FIRST, text=text), result))
    words, read = parse(stream, careless=careless)
    assert words.json == {"message_id": str(FIRST), "text": text}
    assert read.json == json.loads(json.dumps(to_data(result)))


def test_keep_alive_is_a_comment():
    assert parse(sse.KEEP_ALIVE + sse.encode(logged(*STORY[:1])))[0].json["run_id"] == str(RUN)
