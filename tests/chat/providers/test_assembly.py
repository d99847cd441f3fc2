"""The accumulation rules: recorded streams give exactly what is written beside them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.providers.assembly import Assembler
from chat.providers.sse import EventDecoder, ServerEvent
from chat.providers.usage import usage_of
from chat.types import Completion, Fault, RequestedCall, TextDelta, ThinkingDelta, Usage

STREAMS = Path(__file__).parent / "streams"
NAMES = sorted(path.stem for path in STREAMS.glob("*.sse"))


def play(reads, known_tools=frozenset()):
    """All deltas and the completion that a body gives, read in these pieces."""
    decoder, assembler = EventDecoder(), Assembler(known_tools=known_tools)
    batches = [assembler.feed(decoder.feed(read)) for read in reads]
    batches.append(assembler.feed(decoder.close()))
    deltas = [delta for batch in batches for delta in batch]
    completion = assembler.complete()
    said = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    thought = "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta))
    assert (said, thought) == (completion.text, completion.thinking)
    return deltas, completion


def complete(*chunks, done=True, known_tools=frozenset()):
    """The completion of these chunks, each as JSON values or as raw text."""
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    body = "".join(f"data: {text}\n\n" for text in texts) + "data: [DONE]\n\n" * done
    return play([body.encode()], known_tools)[1]


def delta(finish=None, **fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(**fields):
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return fields | {"function": function}


def seen(completion):
    """A completion in the words of the files beside the streams."""
    usage, fault = completion.usage, completion.fault
    return {
        "text": completion.text,
        "thinking": completion.thinking,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in completion.calls
        ],
        "usage": usage
        and {
            "input_tokens": usage.fresh_input + usage.cache_read + usage.cache_write,
            "output_tokens": usage.output,
            "cache_read_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
            "reasoning_tokens": usage.reasoning,
        },
        "stop_reason": completion.finish_reason,
        "raw_stop_reason": completion.raw_finish_reason,
        "error": fault
        and {
            "type": fault.type,
            "code": fault.code,
            "message": fault.message,
            "status": fault.status,
            "retryable": fault.retryable,
        },
        "complete": fault is None,
        "refusal": completion.refusal,
        "tool_call_extras": [dict(call.extra) for call in completion.calls],
    }


def agrees(completion, expected):
    actual = seen(completion)
    compared = actual.keys() & expected.keys()
    assert {key: actual[key] for key in compared} == {key: expected[key] for key in compared}
    assert "refusal" in expected or completion.refusal == ""
    assert completion.details.items() >= expected.get("replay", {}).items()
    if "arguments_parsed" in expected:
        parsed = [json.loads(call.arguments or "{}") for call in completion.calls]
        assert parsed == expected["arguments_parsed"]


@pytest.fixture(params=NAMES)
def recorded(request):
    body = (STREAMS / f"{request.param}.sse").read_bytes()
    return body, json.loads((STREAMS / f"{request.param}.json").read_text())


def test_every_recorded_stream_is_here():
    assert len(NAMES) == 24


def test_recorded_stream_gives_its_answer_whole(recorded):
    body, expected = recorded
    agrees(play([body])[1], expected)


def test_recorded_stream_gives_its_answer_byte_by_byte(recorded):
    body, expected = recorded
    agrees(play([body[at : at + 1] for at in range(len(body))])[1], expected)


@given(data=st.data())
def test_recorded_stream_gives_its_answer_in_any_cutting(data):
    name = data.draw(st.sampled_from(NAMES))
    body = (STREAMS / f"{name}.sse").read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12)))
    reads = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    agrees(play(reads)[1], json.loads((STREAMS / f"{name}.json").read_text()))


def test_last_event_id_of_a_stream_is_kept():
    decoder = EventDecoder()
    decoder.feed((STREAMS / "sse-01-crlf-bom-multiline.sse").read_bytes())
    assert decoder.last_event_id == "8"


def test_deltas_of_one_read_are_merged_with_their_neighbours():
    chunks = [
        delta(reasoning="a"),
        delta(reasoning="b"),
        delta(content="c"),
        delta(content="d"),
        delta(reasoning="e"),
    ]
    events = [ServerEvent(json.dumps(chunk).encode()) for chunk in chunks]
    assert Assembler().feed(events) == (ThinkingDelta("ab"), TextDelta("cd"), ThinkingDelta("e"))


@pytest.mark.parametrize("body", [b"", b": x\n\n: x\n\n", b"event: x\ndata: {}\n\n"])
def test_stream_without_an_answer_is_incomplete(body):
    completion = play([body])[1]
    assert completion.fault == Fault("stream_incomplete")
    assert completion.finish_reason == "error"


@pytest.mark.parametrize("chunks", [[], [delta(role="assistant", content="")], ["{}"]])
def test_stream_that_is_only_an_end_is_an_error(chunks):
    assert complete(*chunks).fault == Fault("stream_empty")


def test_end_without_a_finish_reason_is_a_turn_where_there_is_content():
    assert complete(delta(content="x")).finish_reason == "end_turn"
    assert complete(delta(tool_calls=[call(id="a", name="f")])).finish_reason == "tool_use"


def test_event_that_is_cut_counts_where_it_is_whole():
    chunk = json.dumps(delta("stop", content="x"))
    assert play([b"data: " + chunk.encode()])[1] == Completion(text="x", raw_finish_reason="stop")
    assert play([b"data: " + chunk[:-3].encode()])[1].fault == Fault("stream_incomplete")


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        ("worker limit", Fault("provider_error", "worker limit")),
        ({"message": "w", "code": 502}, Fault("provider_error", "w", 502, 502, retryable=True)),
        (
            {"message": "m", "type": "throttling_error", "code": "429"},
            Fault("throttling_error", "m", "429", 429, retryable=True),
        ),
        (
            {"message": "m", "type": "insufficient_quota", "code": 429},
            Fault("insufficient_quota", "m", 429, 429),
        ),
        ({"message": "sk-abcdefgh12345 is bad"}, Fault("provider_error", "[key] is bad")),
        ({}, None),
        (None, None),
    ],
)
def test_error_in_a_stream_keeps_the_text_before_it(error, fault):
    completion = complete(delta("stop", content="Par"), {"error": error, "choices": []})
    assert (completion.text, completion.fault) == ("Par", fault)
    assert completion.finish_reason == ("error" if fault else "end_turn")


@pytest.mark.parametrize(
    "data", ['{"message":"no model loaded"}', '{"error":{"message":"no model loaded"}}']
)
def test_event_named_error_is_an_error_without_a_type(data):
    completion = play([f"event: error\ndata: {data}\n\n".encode()])[1]
    assert completion.fault == Fault("provider_error", "no model loaded")


def test_flat_error_object_is_an_error():
    completion = complete({"object": "error", "message": "m", "type": "x", "code": "1900"})
    assert completion.fault == Fault("x", "m", "1900")


@pytest.mark.parametrize("word", ["error", "abort", "insufficient_system_resource"])
def test_finish_reason_that_says_broken_is_an_error(word):
    completion = complete(delta(word, content="x"))
    assert completion.fault == Fault("provider_error", code=word)
    assert completion.text == "x"


@pytest.mark.parametrize("data", ["[1]", "3", '"x"', "null", "true", " "])
def test_data_that_is_no_object_is_skipped(data):
    assert complete(data, delta("stop", content="x")).text == "x"


@pytest.mark.parametrize("data", ['{"a":', "[" * 100_000, '{"choices":{}}', "nonsense"])
def test_data_that_cannot_be_read_is_an_error(data):
    completion = complete(delta(content="x"), data, delta("stop", content="y"))
    assert (completion.text, completion.fault) == ("x", Fault("stream_malformed"))


@pytest.mark.parametrize(
    "fields",
    [
        {"content": [None, {"type": "text"}, {"type": "thinking", "thinking": [1]}]},
        {"content": 3, "reasoning": 3, "refusal": [], "reasoning_content": {}},
        {"reasoning_details": "x", "extra_content": [1]},
        {"reasoning_details": [None, 1]},
    ],
)
def test_field_of_an_unknown_type_is_skipped(fields):
    assert complete(delta(**fields), delta("stop", content="y")) == Completion(
        text="y", raw_finish_reason="stop"
    )


def test_content_may_be_a_list_of_texts():
    content = ["a", {"type": "text", "text": "b"}, {"text": [{"text": "c"}]}]
    assert complete(delta("stop", content=content)).text == "abc"


def test_extra_content_of_a_message_is_kept():
    completion = complete(delta("stop", content="x", extra_content={"google": 1}))
    assert completion.details == {"extra_content": {"google": 1}}


def test_invalid_utf8_is_an_error():
    body = b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n'
    assert play([body])[1].fault == Fault("stream_malformed")


def test_foreign_named_event_is_skipped_whatever_it_holds():
    body = (
        b"event: ping\ndata: nonsense\n\ndata: " + json.dumps(delta("stop", content="x")).encode()
    )
    assert play([body + b"\n\n"])[1].text == "x"


@pytest.mark.parametrize(
    "chunk",
    [{"choices": []}, {"choices": None}, {}, {"choices": [{}]}, {"choices": [{"delta": None}]}],
)
def test_chunk_without_a_delta_is_fine(chunk):
    assert complete(chunk, delta("stop", content="x"), chunk).text == "x"


def test_only_the_first_choice_counts():
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]}
    completion = complete(delta(content="yes"), other, delta("stop"))
    assert (completion.text, completion.finish_reason) == ("yes", "end_turn")


def test_line_separators_inside_text_are_kept():
    body = 'data: {"choices":[{"delta":{"content":"A\u2028B\x85C"}}]}\n\ndata: [DONE]\n\n'
    assert play([body.encode()])[1].text == "A\u2028B\x85C"


def test_text_is_made_fit_for_the_database():
    pair = [
        r'{"choices":[{"delta":{"content":"a\ud83d"}}]}',
        r'{"choices":[{"delta":{"content":"\ude00b"}}]}',
    ]
    assert complete(*pair).text == "a😀b"
    assert complete(delta(content="a\0b")).text == "ab"
    assert complete(pair[0], delta(content="c")).text == "a\ufffdc"
    assert (
        complete(r'{"choices":[{"delta":{"content":"x\ude00y"},"logprobs":NaN}]}').text
        == "x\ufffdy"
    )


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call", "whatever", None])
def test_calls_decide_that_tools_are_used(finish):
    completion = complete(delta(finish, tool_calls=[call(index=0, id="a", name="f")]))
    assert completion.finish_reason == "tool_use"


@pytest.mark.parametrize("finish", ["tool_calls", "function_call"])
def test_call_that_is_announced_and_not_sent_is_no_end(finish):
    assert complete(delta(finish, content="I will look.")).finish_reason == "tool_use"
    assert complete(delta(finish, refusal="No.")).finish_reason == "refusal"


def test_limit_and_filter_outrank_calls():
    calls = [call(index=0, id="a", name="f", arguments='{"a"')]
    assert complete(delta("length", tool_calls=calls)).finish_reason == "max_tokens"
    assert complete(delta("content_filter", tool_calls=calls)).finish_reason == "refusal"


def calls_of(*chunks, known_tools=("note_search", "note_list")):
    completion = complete(
        *(delta(tool_calls=list(chunk)) for chunk in chunks), known_tools=frozenset(known_tools)
    )
    return [(call.id, call.name, call.arguments) for call in completion.calls]


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        pytest.param(
            [
                [call(id="a", name="f", arguments='{"q":1}')],
                [call(id="b", name="g", arguments="{}")],
            ],
            [("a", "f", '{"q":1}'), ("b", "g", "{}")],
            id="no index, ids",
        ),
        pytest.param(
            [[call(id="a", name="f")], [call(arguments='{"q"')], [call(arguments=":1}")]],
            [("a", "f", '{"q":1}')],
            id="no index, arguments only",
        ),
        pytest.param(
            [[call(name="f", arguments='{"q":1}')], [call(name="g", arguments="{}")]],
            [(None, "f", '{"q":1}'), (None, "g", "{}")],
            id="no index, no id, other name",
        ),
        pytest.param(
            [[call(name="f", arguments='{"q":1}')], [call(name="f", arguments='{"q":2}')]],
            [(None, "f", '{"q":1}'), (None, "f", '{"q":2}')],
            id="no index, no id, the same tool again",
        ),
        pytest.param(
            [[call(name="f"), call(name="f")]],
            [(None, "f", ""), (None, "f", "")],
            id="no index, no id, no arguments, twice in one chunk",
        ),
        pytest.param(
            [[call(name="f", arguments='{"q"')], [call(name="f", arguments=":1}")]],
            [(None, "f", '{"q":1}')],
            id="no index, no id, name repeated",
        ),
        pytest.param(
            [[call(index=0, id="a", name="f", arguments="{}")], [call(index=0, id="b", name="g")]],
            [("a", "f", "{}"), ("b", "g", "")],
            id="another id at the same index",
        ),
        pytest.param(
            [
                [call(index=0, id="", name="f", arguments="{}")],
                [call(index=0, id="", name="g", arguments='{"a":1}')],
            ],
            [(None, "f", "{}"), (None, "g", '{"a":1}')],
            id="all at index 0 without ids",
        ),
        pytest.param(
            [[call(index=1, id="a", name="f")], [call(index=1, arguments="{}")]],
            [("a", "f", "{}")],
            id="index from 1",
        ),
        pytest.param(
            [
                [call(index=0, id="a", name="f")],
                [call(id="b", name="g")],
                [call(index=0, arguments="{}")],
            ],
            [("a", "f", "{}"), ("b", "g", "")],
            id="mixed",
        ),
        pytest.param(
            [[call(index=0, id="a", name="f")], [call(index=0, id="a", name="f", arguments="{}")]],
            [("a", "f", "{}")],
            id="id and name repeated",
        ),
        pytest.param(
            [
                [call(index=0, id="a", name="note_search", arguments='{"q')],
                *[[call(index=0, name="note_search", arguments="x")]] * 2,
            ],
            [("a", "note_search", '{"qxx')],
            id="name repeated in every chunk",
        ),
        pytest.param(
            [[call(index=0, id="a", name="note_")], [call(index=0, name="search")]],
            [("a", "note_search", "")],
            id="name in pieces",
        ),
        pytest.param(
            [[call(name="note_")], [call(name="search", arguments="{}")]],
            [(None, "note_search", "{}")],
            id="name in pieces, no index, no id",
        ),
        pytest.param(
            [[call(index=0, id="a", name="note_search")], [call(index=0, name="nonsense")]],
            [("a", "note_search", "")],
            id="a further name that leads nowhere",
        ),
        pytest.param([[call(index=0, id=7, name="f")]], [("7", "f", "")], id="id is a number"),
        pytest.param([[{"index": 0}], [{"index": 1}]], [], id="nothing in it"),
        pytest.param(
            [[call(index=0, id="a", name="f", arguments={"b": [1, 2.5], "a": "ü"})]],
            [("a", "f", '{"b":[1,2.5],"a":"ü"}')],
            id="object",
        ),
        pytest.param(
            [[call(index=0, id="a", name="f", arguments=None)]], [("a", "f", "")], id="null"
        ),
        pytest.param(
            [[call(index=0, id="a\0", name="f\0", arguments='"\0')]], [("a", "f", '"')], id="nul"
        ),
    ],
)
def test_fragments_become_calls(chunks, calls):
    assert calls_of(*chunks) == calls


def test_extra_content_of_a_call_is_kept_from_all_its_fragments():
    first = call(index=0, id="a", name="f") | {"extra_content": {"google": {"s": 1}}}
    second = call(index=0) | {"extra_content": {"other": 2}}
    (made,) = complete(delta(tool_calls=[first]), delta(tool_calls=[second])).calls
    assert made == RequestedCall("a", "f", "", {"extra_content": {"google": {"s": 1}, "other": 2}})


def test_reasoning_details_are_joined_into_blocks():
    def piece(**fields):
        return delta(reasoning_details=[{"type": "reasoning.text", "index": 0} | fields])

    encrypted = {"type": "reasoning.encrypted", "data": "x", "index": 1}
    completion = complete(
        piece(text="a", signature=None),
        piece(text="b"),
        piece(text="", signature="s"),
        delta(reasoning_details=[encrypted]),
        delta("stop", content="!"),
    )
    assert completion.details["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"},
        encrypted,
    ]


def test_vendor_fields_are_made_fit_for_the_database():
    extra = call(index=0, id="a", name="f") | {"extra_content": {"k\0": "v\0"}}
    completion = complete(
        delta(tool_calls=[extra], reasoning_details=[{"type": "x", "data": "\0d"}]),
        delta("st\0op" + "x" * 1000),
        {"error": {"message": "m\0", "type": "t\0", "code": "c\0"}},
    )
    assert completion.calls[0].extra == {"extra_content": {"k": "v"}}
    assert completion.details["reasoning_details"] == [{"type": "x", "data": "d"}]
    assert completion.fault == Fault("t", "m", "c")
    assert completion.raw_finish_reason == ("stop" + "x" * 1000)[:100]


def test_only_one_reasoning_field_is_read():
    completion = complete(delta(reasoning="a", reasoning_content="a", content="b"))
    assert (completion.thinking, completion.text) == ("a", "b")
    assert completion.details == {"reasoning_content": "a"}


@pytest.mark.parametrize(
    ("usage", "buckets"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(fresh_input=10, output=5)),
        (
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 12}},
            Usage(fresh_input=0, cache_read=12),
        ),
        (
            {"prompt_tokens": None, "completion_tokens": 2.0, "prompt_tokens_details": None},
            Usage(output=2),
        ),
        ({"prompt_tokens": "3", "completion_tokens": -1}, Usage()),
        ({"prompt_tokens": 10**40, "completion_tokens": True}, Usage(fresh_input=2**31 - 1)),
        (
            {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 4}},
            Usage(output=9, reasoning=4),
        ),
        ({"cost": 1}, None),
        ({}, None),
        (3, None),
    ],
)
def test_usage_becomes_disjoint_buckets(usage, buckets):
    assert usage_of(usage) == buckets


def test_usage_that_was_told_is_not_taken_back():
    completion = complete(
        delta("stop", content="x") | {"usage": {"prompt_tokens": 3}}, {"usage": None}, {"usage": {}}
    )
    assert completion.usage == Usage(fresh_input=3)


def test_whole_answer_in_json_is_accepted():
    message = {"role": "assistant", "content": "Hi", "tool_calls": [call(id="a", name="f")]}
    body = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    assembler = Assembler()
    assert assembler.feed_body(json.dumps(body).encode()) == (TextDelta("Hi"),)
    assert assembler.complete() == Completion(
        text="Hi",
        calls=(RequestedCall("a", "f", ""),),
        usage=Usage(fresh_input=3, output=1),
        finish_reason="tool_use",
        raw_finish_reason="tool_calls",
    )


def test_broken_connection_fails_only_a_turn_that_had_not_ended():
    fault = Fault("connection_lost")
    for finish, expected in ((None, fault), ("stop", None)):
        assembler = Assembler()
        assembler.feed([ServerEvent(json.dumps(delta(finish, content="x")).encode())])
        assembler.fail(fault)
        assert assembler.complete().fault == expected


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "delta",
                        "tool_calls",
                        "function",
                        "content",
                        "usage",
                        "error",
                        "index",
                        "id",
                        "name",
                        "arguments",
                        "x_groq",
                        "text",
                        "type",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_assembler_survives_any_json(value):
    completion = complete(json.dumps(value))
    assert (completion.finish_reason == "error") == (completion.fault is not None)
