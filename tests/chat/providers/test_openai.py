"""The OpenAI-style provider: what it sends, how it reads, how it ends."""

import asyncio
import json
from contextlib import aclosing

import httpx
import pytest

from chat.exceptions import ProviderError
from chat.providers import openai as openai_module
from chat.providers.openai import OpenAIProvider
from chat.providers.openai_request import Quirks, body_of
from chat.providers.sse import MAX_EVENT_BYTES
from chat.types import (
    AssistantMessage,
    Completion,
    Fault,
    ModelRequest,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.chat.providers.conftest import SSE, chunked
from tools.definitions import ToolSpec

URL = "https://vendor.test/v1/chat/completions"
TOOL = ToolSpec("note_search", "Find notes.", {"type": "object", "properties": {"q": {}}})
CHATTED = (SystemMessage("Be kind."), UserMessage("Hi"))


def request(*messages, **fields):
    return ModelRequest(model="m-1", messages=messages or CHATTED, **fields)


def sent(*messages, quirks=None, options=None, **fields):
    quirks = quirks or Quirks()
    options = quirks.options if options is None else frozenset(options)
    made = request(*messages, **fields)
    return json.loads(body_of(made, provider="vendor", quirks=quirks, options=options))


def sse(*chunks, done=True):
    texts = [json.dumps(chunk) for chunk in chunks] + ["[DONE]"] * done
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def delta(finish=None, **fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


HELLO = sse(delta(content="Hel"), delta(content="lo"), delta("stop"))


async def collect(provider, made=None):
    batches = [batch async for batch in provider.stream(made or request())]
    *deltas, last = [each for batch in batches for each in batch]
    assert isinstance(last, Completion)
    return deltas, last


def test_plain_request_holds_no_key_that_it_does_not_need():
    assert sent() == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_tools_are_sent_with_their_schema_and_the_choice_only_with_tools():
    body = sent(tools=(TOOL,), tool_choice="none")
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "note_search",
                "description": "Find notes.",
                "parameters": {"type": "object", "properties": {"q": {}}},
            },
        }
    ]
    assert body["tool_choice"] == "none"
    assert "tool_choice" not in sent(tools=(TOOL,))
    assert not {"tools", "tool_choice"} & sent(tool_choice="none").keys()


def test_tool_without_parameters_gets_an_empty_object():
    (tool,) = sent(tools=(ToolSpec("now", "Time."),))["tools"]
    assert tool["function"]["parameters"] == {"type": "object", "properties": {}}


def test_history_with_calls_is_written_as_openai_wants_it():
    call = ToolCall("c1", "note_search", '{"q":"x"}')
    bare = ToolCall("c2", "note_list", " ")
    body = sent(
        UserMessage("find x"),
        AssistantMessage("", calls=(call, bare)),
        ToolMessage("c1", "note_search", "none"),
        ToolMessage("c2", "note_list", "boom", is_error=True),
        AssistantMessage("Nothing there."),
    )
    _, asked, found, failed, answered = body["messages"]
    assert asked == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "note_search", "arguments": '{"q":"x"}'},
            },
            {"id": "c2", "type": "function", "function": {"name": "note_list", "arguments": "{}"}},
        ],
    }
    assert found == {"role": "tool", "tool_call_id": "c1", "content": "none"}
    assert failed == {"role": "tool", "tool_call_id": "c2", "content": "Error: boom"}
    assert answered == {"role": "assistant", "content": "Nothing there."}


def test_short_call_ids_agree_between_call_and_result():
    calls = (ToolCall("call_abc", "f", "{}"), ToolCall("Xa81kPq0z", "f", "{}"))
    body = sent(
        AssistantMessage("", calls=calls),
        ToolMessage("call_abc", "f", "1"),
        ToolMessage("Xa81kPq0z", "f", "2"),
        quirks=Quirks(short_call_ids=True),
    )
    asked, first, second = body["messages"]
    ids = [call["id"] for call in asked["tool_calls"]]
    assert ids == [first["tool_call_id"], second["tool_call_id"]]
    assert ids[1] == "Xa81kPq0z"
    assert len(ids[0]) == 9
    assert ids[0].isalnum()


def test_plain_schemas_lose_keywords_but_no_property():
    schema = {
        "$schema": "x",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "strict": {"type": "object", "additionalProperties": False},
            "list": {"anyOf": [{"$id": "y", "type": "null"}]},
        },
    }
    tool = ToolSpec("f", "", schema)
    (plain,) = sent(tools=(tool,), quirks=Quirks(plain_schemas=True))["tools"]
    assert plain["function"]["parameters"] == {
        "type": "object",
        "properties": {"strict": {"type": "object"}, "list": {"anyOf": [{"type": "null"}]}},
    }
    (whole,) = sent(tools=(tool,))["tools"]
    assert whole["function"]["parameters"] == schema


EXTRA = {"extra_content": {"google": {"thought_signature": "U0="}}}
REPLAYABLE = ("reasoning_content", "reasoning_details", "extra_content")


@pytest.mark.parametrize("home", ["vendor", "other"])
def test_vendor_fields_go_back_only_to_the_vendor_they_came_from(home):
    details = {"reasoning_content": "r", "reasoning_details": [{"text": "r"}], "unknown": 1}
    message = AssistantMessage(
        "", calls=(ToolCall("c", "f", "{}", EXTRA),), provider=home, details=details
    )
    (wire,) = sent(message, options=REPLAYABLE)["messages"]
    at_home = home == "vendor"
    assert ("reasoning_content" in wire, "reasoning_details" in wire) == (at_home, at_home)
    assert ("extra_content" in wire["tool_calls"][0]) is at_home
    assert "unknown" not in wire
    (silent,) = sent(message)["messages"]
    assert silent.keys() == {"role", "content", "tool_calls"}
    assert silent["tool_calls"][0].keys() == {"id", "type", "function"}


def test_reasoning_content_goes_back_only_with_calls():
    message = AssistantMessage("x", provider="vendor", details={"reasoning_content": "r"})
    assert "reasoning_content" not in sent(message, options=REPLAYABLE)["messages"][0]


async def test_stream_gives_deltas_and_one_completion(mocked, upstream_of):
    client, router = mocked
    router.post(URL).respond(200, content=HELLO)
    deltas, last = await collect(OpenAIProvider(upstream_of(client)))
    assert deltas == [TextDelta("Hello")]
    assert last == Completion(text="Hello", raw_finish_reason="stop")


async def test_whole_json_answer_is_taken_for_a_stream(mocked, upstream_of):
    client, router = mocked
    choice = {"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}
    router.post(URL).respond(200, json={"object": "chat.completion", "choices": [choice]})
    deltas, last = await collect(OpenAIProvider(upstream_of(client)))
    assert deltas == [TextDelta("Hello")]
    assert (last.text, last.fault) == ("Hello", None)


@pytest.mark.parametrize("body", ["events", "json"])
async def test_thinking_in_tags_is_split_where_the_quirk_says_so(mocked, upstream_of, body):
    client, router = mocked
    chunks = [delta(content="<think>De"), delta("stop", content="ep</think>Blue")]
    whole = {"choices": [{"message": {"content": "<think>Deep</think>Blue"}}]}
    content = sse(*chunks) if body == "events" else json.dumps(whole).encode()
    router.post(URL).respond(200, content=content)
    local = OpenAIProvider(upstream_of(client), quirks=Quirks(think_tags=True))
    deltas, last = await collect(local)
    assert (last.thinking, last.text) == ("Deep", "Blue")
    assert deltas[-1] == TextDelta("Blue")
    assert (await collect(OpenAIProvider(upstream_of(client))))[1].text.startswith("<think>")


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
async def test_event_stream_is_known_by_its_bytes(mocked, upstream_of, content_type):
    client, router = mocked
    body = b"\n" + HELLO
    router.post(URL).respond(200, content=body, headers={"content-type": content_type})
    assert (await collect(OpenAIProvider(upstream_of(client))))[1].text == "Hello"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", Fault("stream_incomplete", "Vendor ended the answer before it was complete.")),
        (b"data: [DONE]\n\n", Fault("stream_empty", "Vendor returned an empty answer.")),
        (b"data: {\n\n", Fault("stream_malformed", "Vendor sent something that cannot be read.")),
        (
            b"<!doctype html>",
            Fault("not_an_api", "Vendor answered with a web page: its URL is not an API."),
        ),
        (
            b'{"error":{"message":"no credits for secret-key-1","code":402}}',
            Fault("provider_error", "no credits for [key]", 402, 402),
        ),
        (
            b'[{"error":{"message":"m","code":400,"status":"X"}}]',
            Fault("provider_error", "m", 400, 400),
        ),
        (
            sse(delta("error", content="x")),
            Fault("provider_error", "Vendor failed without saying why.", "error"),
        ),
    ],
)
async def test_answer_that_is_none_is_a_fault_with_words(mocked, upstream_of, body, fault):
    client, router = mocked
    router.post(URL).respond(200, content=body)
    _, last = await collect(OpenAIProvider(upstream_of(client)))
    assert (last.finish_reason, last.fault) == ("error", fault)


async def test_answer_without_an_end_is_stopped(mocked, upstream_of, monkeypatch):
    monkeypatch.setattr(openai_module, "MAX_ANSWER_BYTES", 1000)
    client, router = mocked
    router.post(URL).respond(200, content=sse(delta(content="x" * 2000)))
    _, last = await collect(OpenAIProvider(upstream_of(client)))
    assert last.fault == Fault("stream_too_large", "Vendor sent more than an answer may hold.")


async def test_event_without_an_end_is_a_fault(mocked, upstream_of):
    client, router = mocked
    router.post(URL).respond(200, content=b"data: " + b"x" * (MAX_EVENT_BYTES + 1))
    _, last = await collect(OpenAIProvider(upstream_of(client)))
    assert last.fault is not None
    assert last.fault.type == "stream_too_large"


async def test_refused_option_is_left_out_and_remembered(mocked, upstream_of, pauses):
    client, router = mocked
    refusal = {"error": {"message": "property 'stream_options' is unsupported"}}
    route = router.post(URL).mock(
        side_effect=[httpx.Response(400, json=refusal), *[httpx.Response(200, content=HELLO)] * 2]
    )
    provider = OpenAIProvider(upstream_of(client))
    for _ in range(2):
        assert (await collect(provider))[1].text == "Hello"
    asked = ["stream_options" in json.loads(call.request.content) for call in route.calls]
    assert (asked, pauses) == ([True, False, False], [])


@pytest.mark.parametrize(
    "message",
    [
        "The reasoning_content in the thinking mode must be passed back to the API.",
        "Function call is missing a thought_signature",
    ],
)
async def test_field_that_a_server_demands_is_sent_back(mocked, upstream_of, message):
    client, router = mocked
    refusal = httpx.Response(400, json={"error": {"message": message}})
    route = router.post(URL).mock(side_effect=[refusal, httpx.Response(200, content=HELLO)])
    history = AssistantMessage(
        "",
        calls=(ToolCall("c", "f", "{}", EXTRA),),
        provider="vendor",
        details={"reasoning_content": "why"},
    )
    await collect(OpenAIProvider(upstream_of(client)), request(UserMessage("x"), history))
    first, second = (call.request.content for call in route.calls)
    assert (b'"why"' in first, b"U0=" in first) == (False, False)
    assert (b'"why"' in second) != (b"U0=" in second)


async def test_option_is_dropped_only_once(mocked, upstream_of):
    client, router = mocked
    refusal = {"error": {"message": "stream_options, still"}}
    route = router.post(URL).respond(422, json=refusal)
    with pytest.raises(ProviderError):
        await collect(OpenAIProvider(upstream_of(client)))
    assert route.call_count == 2


async def test_refusal_of_something_else_is_told(mocked, upstream_of):
    client, router = mocked
    route = router.post(URL).respond(400, json={"error": {"message": "model is required"}})
    with pytest.raises(ProviderError, match="model is required"):
        await collect(OpenAIProvider(upstream_of(client)))
    assert route.call_count == 1


async def test_closing_the_stream_closes_the_connection(client, upstream_of, vendor_server):
    async def script(send):
        await send(
            SSE
            + b"Transfer-Encoding: chunked\r\n\r\n"
            + chunked(sse(delta(content="a"), done=False))
        )
        await asyncio.Event().wait()

    async with vendor_server(script) as vendor, asyncio.timeout(5):
        provider = OpenAIProvider(upstream_of(client, vendor.url))
        async with aclosing(provider.stream(request())) as stream:
            assert await anext(stream) == (TextDelta("a"),)
        await vendor.gone.wait()


async def test_cancelling_a_wait_closes_the_connection(client, upstream_of, vendor_server):
    reached = asyncio.Event()

    async def script(send):
        reached.set()
        await asyncio.Event().wait()

    async with vendor_server(script) as vendor, asyncio.timeout(5):
        provider = OpenAIProvider(upstream_of(client, vendor.url))
        waiting = asyncio.ensure_future(collect(provider))
        await reached.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await vendor.gone.wait()


@pytest.mark.parametrize(
    ("ending", "fault"),
    [
        (
            b"",
            Fault(
                "connection_lost",
                "The connection to Vendor broke off in the middle of the answer.",
                retryable=True,
            ),
        ),
        (sse(delta("stop"), done=False), None),
    ],
)
async def test_lost_connection_is_a_fault_unless_the_turn_had_ended(
    client, upstream_of, vendor_server, ending, fault
):
    body = sse(delta(content="a"), done=False) + ending

    async def script(send):
        await send(SSE + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(body))
        return "close"

    async with vendor_server(script) as vendor:
        _, last = await collect(OpenAIProvider(upstream_of(client, vendor.url)))
    assert (last.text, last.fault) == ("a", fault)


async def test_silence_in_the_middle_is_a_fault(client, upstream_of, vendor_server, monkeypatch):
    async def script(send):
        await send(
            SSE
            + b"Transfer-Encoding: chunked\r\n\r\n"
            + chunked(sse(delta(content="a"), done=False))
        )
        await asyncio.Event().wait()

    monkeypatch.setattr("chat.providers.http._HOSTED_GAP", 0.1)
    async with vendor_server(script) as vendor, asyncio.timeout(5):
        _, last = await collect(OpenAIProvider(upstream_of(client, vendor.url)))
    assert last.text == "a"
    assert last.fault is not None
    assert last.fault.type == "timeout"


async def test_server_that_keeps_the_connection_open_after_the_end_is_left(
    client, upstream_of, vendor_server
):
    async def script(send):
        await send(SSE + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(HELLO))
        await asyncio.Event().wait()

    async with vendor_server(script) as vendor, asyncio.timeout(5):
        _, last = await collect(OpenAIProvider(upstream_of(client, vendor.url)))
        assert last.text == "Hello"
        await vendor.gone.wait()


async def test_connection_is_used_again_by_the_next_call(client, upstream_of, vendor_server):
    async def script(send):
        await send(SSE + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(HELLO))
        await send(b"0\r\n\r\n")

    async with vendor_server(script) as vendor:
        provider = OpenAIProvider(upstream_of(client, vendor.url))
        for _ in range(3):
            await collect(provider)
        assert vendor.connections == 1
