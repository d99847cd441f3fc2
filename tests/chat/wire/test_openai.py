import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.events import Done, RunStarted, Snapshot, TextDelta, ThinkingDelta
from chat.loop.folding import fold
from chat.wire.openai import CompletionStream, completion_body
from tests.chat.wire.parser import Event, parse
from tests.chat.wire.samples import (
    CONVERSATION,
    DONE,
    FAILED,
    FIRST,
    RUN,
    SECOND,
    STARTED,
    STORY,
    logged,
)

CREATED = datetime(2026, 11, 30, tzinfo=UTC)


def stream(*events, cuts=()) -> list[Event]:
    encoder = CompletionStream(run_id=RUN, created=CREATED)
    batch = logged(*events)
    edges = [0, *cuts, len(batch)]
    pieces = [encoder.encode(batch[a:b]) for a, b in zip(edges, edges[1:], strict=False)]
    return parse(b"".join(pieces))


def unnamed(parsed) -> list[Event]:
    return [event for event in parsed if event.name == "message"]


def chunks(parsed) -> list[dict]:
    return [event.json for event in unnamed(parsed) if event.data != "[DONE]"]


def deltas(parsed, key) -> list[str]:
    return [d[key] for c in chunks(parsed) if (d := c["choices"][0]["delta"]).get(key)]


def test_stream_has_text_only_in_chunks_and_the_rest_only_in_named_events():
    parsed = stream(*STORY)
    assert "".join(deltas(parsed, "content")) == "Making it.\n\nMade it."
    assert "".join(deltas(parsed, "reasoning_content")) == "A note, then."
    assert [event.name for event in parsed if event.name != "message"] == [
        "run_started",
        "message_completed",
        "usage",
        "tool_use",
        "tool_started",
        "tool_result",
        "message_completed",
        "usage",
        "notice",
        "done",
    ]


def test_stream_ends_with_one_finish_chunk_then_done_then_the_marker():
    parsed = stream(*STORY)
    assert [event.data for event in parsed[-1:]] == ["[DONE]"]
    assert [event.name for event in parsed[-3:]] == ["message", "done", "message"]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks(parsed)]
    assert [reason for reason in reasons if reason] == ["stop"]
    assert parsed[-3].json["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]


def test_chunks_agree_on_id_time_and_model_and_name_the_role_once_first():
    found = chunks(stream(*STORY))
    assert {(c["id"], c["object"], c["created"], c["model"]) for c in found} == {
        (f"chatcmpl-{RUN.hex}", "chat.completion.chunk", int(CREATED.timestamp()), "m1")
    }
    assert ["role" in chunk["choices"][0]["delta"] for chunk in found] == [
        True,
        *[False] * (len(found) - 1),
    ]


def test_every_event_of_the_stream_carries_its_id():
    parsed = stream(*STORY)
    assert {event.id for event in parsed} == {f"1-{seq}" for seq in range(1, len(STORY) + 1)}


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("denied", "stop"),
        ("stopped", "stop"),
        ("max_iterations", "length"),
        ("budget", "length"),
        ("deadline", "length"),
    ],
)
def test_finish_reason_says_whether_it_was_cut_off(reason, finish):
    parsed = stream(STARTED, Done(reason=reason, run_id=RUN))
    [chunk] = chunks(parsed)
    assert chunk["choices"][0]["finish_reason"] == finish


def test_error_is_a_named_event_and_an_error_object_without_a_finish_chunk():
    parsed = stream(STARTED, FAILED, Done(reason="error", run_id=RUN))
    assert [event.name for event in parsed] == [
        "run_started",
        "error",
        "message",
        "done",
        "message",
    ]
    assert parsed[2].json == {
        "error": {
            "message": "overloaded",
            "type": "server_error",
            "param": None,
            "code": "provider_error",
        }
    }
    assert parsed[-1].data == "[DONE]"


def test_new_attempt_goes_on_behind_a_blank_line():
    half, whole = (TextDelta(message_id=FIRST, text=text) for text in ("Half", "Whole."))
    again = RunStarted(
        run_id=RUN, conversation_id=CONVERSATION, message_id=FIRST, model="m2", provider="p"
    )
    parsed = stream(STARTED, half, again, whole)
    assert deltas(parsed, "content") == ["Half", "\n\nWhole."]


@given(st.lists(st.integers(0, len(STORY)), max_size=5).map(sorted))
def test_stream_is_the_same_in_whatever_batches_it_comes(cuts):
    assert stream(*STORY, cuts=cuts) == stream(*STORY)


def test_body_holds_what_the_stream_says():
    body = completion_body(fold(STORY), run_id=RUN, conversation_id=CONVERSATION, created=CREATED)
    parsed = stream(*STORY)
    message = body["choices"][0]["message"]
    assert message == {
        "role": "assistant",
        "content": "".join(deltas(parsed, "content")),
        "reasoning_content": "".join(deltas(parsed, "reasoning_content")),
    }
    assert (body["object"], body["model"]) == ("chat.completion", "m1")
    assert (body["choices"][0]["finish_reason"], body["stop_reason"]) == ("stop", "end_turn")
    assert body["message_id"] == str(SECOND)
    assert body["tool_calls"] == [
        {
            "id": "call_1",
            "name": "note_create",
            "arguments": '{"title": "A"}',
            "status": "done",
            "content": '{"id": "1"}',
            "is_error": False,
        }
    ]
    assert body["usage"] == {
        "prompt_tokens": 30,
        "completion_tokens": 14,
        "total_tokens": 44,
        "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 8},
    }
    assert body["notices"] == [{"code": "max_tokens", "text": "Cut off."}]


def test_body_of_a_run_that_said_nothing_is_complete():
    folded = fold([STARTED, Done(reason="stopped", run_id=RUN)])
    body = completion_body(folded, run_id=RUN, conversation_id=CONVERSATION, created=CREATED)
    assert body["choices"][0]["message"] == {"role": "assistant", "content": ""}
    assert (body["usage"], body["message_id"], body["stop_reason"]) == (None, None, "stopped")


def test_thinking_of_successive_messages_is_joined_by_a_blank_line():
    thoughts = [ThinkingDelta(message_id=id_, text="hm") for id_ in (FIRST, FIRST, SECOND)]
    parsed = stream(STARTED, *thoughts, DONE)
    assert deltas(parsed, "reasoning_content") == ["hm", "hm", "\n\nhm"]


@pytest.mark.parametrize("told", range(1, len(STORY) - 1))
def test_snapshot_in_the_middle_completes_the_text_of_the_chunks(told):
    state = json.loads(json.dumps(fold(STORY[:-1]).state()))
    snapshot = Snapshot(state=state, covers=f"1-{len(STORY) - 1}")
    parsed = stream(*STORY[:told], snapshot, STORY[-1])
    assert "".join(deltas(parsed, "content")) == "Making it.\n\nMade it."
    assert "".join(deltas(parsed, "reasoning_content")) == "A note, then."


def test_snapshot_after_an_interruption_says_the_last_message_once_more():
    state = json.loads(json.dumps(fold(STORY[:-1]).state()))
    snapshot = Snapshot(state=state, covers=f"2-{len(STORY) - 1}")
    parsed = stream(*STORY[:4], STARTED, snapshot, STORY[-1])
    assert "".join(deltas(parsed, "content")) == "Making \n\nMade it."
