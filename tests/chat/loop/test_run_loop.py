import asyncio
import json
from collections import Counter
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat import events
from chat.exceptions import ProviderError
from chat.loop import notices
from chat.loop.folding import fold
from chat.loop.run_loop import Limits, LoopEnded, run_loop
from chat.testing import ScriptedProvider, calls, fails, says
from chat.types import (
    AssistantMessage,
    CallOutcome,
    Completion,
    Fault,
    PendingCall,
    Progress,
    RequestedCall,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from tests.chat.loop.rules import assert_valid
from tools.definitions import ToolSpec

ASKED = Progress((UserMessage("make a note"),))
TOOLS = (ToolSpec("note_create", "Make a note.", {"type": "object"}),)
CREATE = ("note_create", {"title": "Groceries"})


class Tools:
    """Stands for ``invoke``: remembers what ran, answers in turn, the last answer again."""

    def __init__(self, *outcomes: CallOutcome) -> None:
        self.ran: list[ToolCall] = []
        self._outcomes = outcomes or (CallOutcome("made"),)

    async def __call__(self, call: ToolCall) -> CallOutcome:
        self.ran.append(call)
        return self._outcomes[min(len(self.ran), len(self._outcomes)) - 1]


def loop(provider, tools=None, progress=ASKED, **options):
    options = {"model": "m", "system": "Be brief.", "tools": TOOLS} | options
    return run_loop(provider=provider, progress=progress, invoke=tools or Tools(), **options)


async def drain(*args, **options) -> tuple[list, Any]:
    """The events, flat, and how the loop ended."""
    batches = [batch async for batch in loop(*args, **options)]
    *told, ended = [item for batch in batches for item in batch]
    assert batches[-1] == (ended,)
    assert isinstance(ended, LoopEnded)
    assert not any(isinstance(item, LoopEnded) for item in told)
    return told, ended


def names(told) -> list[str]:
    return [event.name for event in told]


def sent(provider, call=0) -> Any:
    return provider.requests[call].messages


def of(told, kind) -> list[Any]:
    return [event for event in told if isinstance(event, kind)]


async def test_loop_gives_events_in_their_order_in_the_batches_that_are_barriers():
    provider = ScriptedProvider(calls(CREATE, text="I will."), says("Done.", thinking="hm"))
    batches = [names(batch) async for batch in loop(provider) if len(batch) != 1 or _named(batch)]
    assert (
        batches
        == [
            ["text_delta"],
            ["text_delta"],
            ["message_completed", "usage", "tool_use"],
            ["tool_started"],
            ["tool_result"],
            ["thinking_delta"],
            ["thinking_delta"],
            ["text_delta"],
            ["text_delta"],
            ["message_completed", "usage"],
        ][1:]
    )


def _named(batch) -> bool:
    return not isinstance(batch[0], LoopEnded)


async def test_loop_starts_a_tool_only_when_asked_for_the_batch_behind_tool_started():
    tools = Tools()
    async with aclosing(loop(ScriptedProvider(calls(CREATE), says("ok")), tools)) as batches:
        async for batch in batches:
            if isinstance(batch[0], events.ToolStarted):
                assert len(batch) == 1
                assert tools.ran == []
                break
        assert isinstance((await anext(batches))[0], events.ToolResult)
    assert len(tools.ran) == 1


async def test_loop_ends_with_the_answer():
    provider = ScriptedProvider(says("Hello."))
    told, ended = await drain(provider)
    [completed] = of(told, events.MessageCompleted)
    assert ended == LoopEnded("end_turn", completed.message_id, 1)
    assert completed.iteration == 1
    assert fold(told).messages[0].text == "Hello."
    [request] = provider.requests
    assert [m.text for m in sent(provider)] == ["Be brief.", "make a note"]
    assert (request.tools, request.tool_choice) == (TOOLS, "auto")


async def test_loop_sends_the_results_back_in_place():
    provider = ScriptedProvider(calls(CREATE, CREATE), says("Both made."))
    tools = Tools(CallOutcome("one"), CallOutcome("two", "error", is_error=True))
    await drain(provider, tools)
    _, _, asked, first, second = sent(provider, 1)
    assert [call.id for call in asked.calls] == [first.call_id, second.call_id]
    assert (first.content, first.is_error) == ("one", False)
    assert (second.content, second.is_error) == ("two", True)


@pytest.mark.parametrize("reason", ["end_turn", "tool_use", "stop_sequence", "max_tokens"])
async def test_loop_runs_calls_whatever_the_finish_reason_says(reason):
    tools = Tools()
    _, ended = await drain(ScriptedProvider(calls(CREATE, finish_reason=reason), says("ok")), tools)
    assert [call.name for call in tools.ran] == ["note_create"]
    assert ended.reason == "end_turn"


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "context_window"])
@pytest.mark.parametrize("arguments", ['{"title": "Groc', "", "[1]"])
async def test_loop_never_runs_a_call_that_was_cut_off(reason, arguments):
    tools = Tools()
    cut = calls(CREATE, ("note_create", arguments), finish_reason=reason)
    told, ended = await drain(ScriptedProvider(cut, says("Shorter then.")), tools)
    assert [call.arguments for call in tools.ran] == [json.dumps(CREATE[1])]
    _, result = of(told, events.ToolResult)
    assert (result.content, result.status, result.is_error) == (notices.TRUNCATED, "error", True)
    assert len(of(told, events.ToolStarted)) == 1
    assert ended.reason == "end_turn"


async def test_loop_leaves_broken_arguments_of_a_whole_message_to_invoke():
    tools = Tools(CallOutcome("not JSON", "error", is_error=True))
    await drain(ScriptedProvider(calls(("note_create", "{nope")), says("Sorry.")), tools)
    assert [call.arguments for call in tools.ran] == ["{nope"]


async def test_loop_asks_once_more_without_tools_after_ten_iterations():
    provider = ScriptedProvider(*[calls(CREATE)] * 10, says("That is all."))
    told, ended = await drain(provider)
    assert ended.reason == "max_iterations"
    assert ended.iterations == 10
    assert [request.tool_choice for request in provider.requests] == ["auto"] * 10 + ["none"]
    assert all(request.tools == TOOLS for request in provider.requests)
    assert len(of(told, events.ToolResult)) == 10
    iterations = [event.iteration for event in of(told, events.MessageCompleted)]
    assert iterations == [*range(1, 11), 0]
    assert not of(told, events.Notice)


async def test_loop_skips_a_call_that_the_last_call_makes_all_the_same():
    tools = Tools()
    told, ended = await drain(ScriptedProvider(calls(CREATE)), tools)
    assert len(tools.ran) == 10
    result = of(told, events.ToolResult)[-1]
    assert (result.content, result.status, result.is_error) == (notices.SKIPPED, "skipped", True)
    assert ended.reason == "max_iterations"


async def test_loop_says_so_where_the_last_answer_is_blank():
    told, _ = await drain(ScriptedProvider(*[calls(CREATE)] * 10, says(" \n")))
    assert [notice.code for notice in of(told, events.Notice)] == ["max_iterations"]


@pytest.mark.parametrize(("wanted", "asked"), [(0, 1), (1, 1), (3, 3), (10, 10), (50, 10)])
async def test_loop_clamps_its_iterations_and_leaves_the_limits_alone(wanted, asked):
    provider = ScriptedProvider(calls(CREATE))
    limits = Limits(iterations=wanted)
    _, ended = await drain(provider, limits=limits)
    assert len(provider.requests) == asked + 1
    assert ended.iterations == asked
    assert limits == Limits(iterations=wanted)


async def test_loop_nudges_once_where_a_call_is_announced_but_missing():
    provider = ScriptedProvider(says("I will look.", finish_reason="tool_use"))
    told, ended = await drain(provider)
    assert len(provider.requests) == 2
    assert provider.requests[1].messages[-1] == UserMessage(notices.NUDGE)
    assert [notice.code for notice in of(told, events.Notice)] == ["nudged", "call_missing"]
    assert ended.reason == "end_turn"


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "context_window", "pause_turn"])
async def test_loop_ends_with_a_notice_where_the_answer_was_cut(reason):
    told, ended = await drain(ScriptedProvider(says("Once upon", finish_reason=reason)))
    assert [notice.code for notice in of(told, events.Notice)] == [reason]
    assert of(told, events.MessageCompleted)[0].finish_reason == reason
    assert ended.reason == "end_turn"


async def test_loop_shows_the_words_of_a_refusal():
    refused = [Completion(refusal="I cannot help with that.", finish_reason="refusal")]
    told, ended = await drain(ScriptedProvider(refused))
    assert of(told, events.Notice)[0].text == "I cannot help with that."
    assert ended.reason == "end_turn"


async def test_loop_says_so_where_an_answer_is_empty():
    told, ended = await drain(ScriptedProvider(says("")))
    assert [notice.code for notice in of(told, events.Notice)] == ["empty_answer"]
    assert ended.reason == "end_turn"


async def test_loop_ends_in_an_error_and_keeps_the_text_where_the_provider_breaks_off():
    told, ended = await drain(ScriptedProvider(fails("overloaded", text="Half an ans", status=529)))
    assert names(told) == ["text_delta", "message_completed", "usage", "error"]
    error = told[-1]
    assert (error.code, error.message, error.provider) == (
        "provider_error",
        "overloaded",
        "scripted",
    )
    assert error.status == 529
    assert ended.reason == "error"
    assert ended.fault.message == "overloaded"


async def test_loop_runs_no_call_of_a_message_that_broke_off():
    broken = [
        Completion(
            text="I will",
            calls=(RequestedCall("a", "note_create", "{}"),),
            finish_reason="error",
            fault=Fault("server_error"),
        )
    ]
    tools = Tools()
    told, ended = await drain(ScriptedProvider(broken), tools)
    assert tools.ran == []
    assert not of(told, events.ToolUse)
    assert ended.reason == "error"


async def test_loop_ends_in_an_error_where_the_provider_refuses_to_begin():
    fault = Fault("authentication", "bad key", status=401)
    refused = [ProviderError("The key was refused.", provider="scripted", fault=fault)]
    told, ended = await drain(ScriptedProvider(refused))
    assert told == [
        events.ErrorOccurred(
            code="provider_error", message="The key was refused.", provider="scripted", status=401
        )
    ]
    assert ended == LoopEnded("error", None, 0, fault)


async def test_loop_takes_a_stream_without_an_end_as_an_error():
    told, ended = await drain(ScriptedProvider([]))
    assert names(told) == ["error"]
    assert ended.fault.type == "stream_incomplete"


async def test_loop_passes_reported_usage_on_and_estimates_where_there_is_none():
    reported = Usage(fresh_input=7, output=3)
    provider = ScriptedProvider(calls(CREATE, usage=reported), says("x" * 40))
    told, _ = await drain(provider)
    first, second = of(told, events.UsageReported)
    assert first.usage == reported
    assert second.usage.estimated
    assert second.usage.output == 10
    assert second.usage.fresh_input > 0


@pytest.mark.parametrize("given_id", [None, "", "  ", "call_used", "call_before", "é", "x" * 201])
async def test_loop_mints_an_id_where_the_given_one_cannot_be_kept(given_id):
    before = AssistantMessage("", calls=(ToolCall("call_before", "note_create", "{}"),))
    progress = Progress((UserMessage("a"), before, UserMessage("b")))
    requested = RequestedCall(given_id, "note_create", "{}")
    minted = iter(["call_used", "call_new"])
    told, _ = await drain(
        ScriptedProvider(calls(requested), says("ok")),
        progress=progress,
        used_ids={"call_used"},
        mint=lambda: next(minted),
    )
    assert of(told, events.ToolUse)[0].calls[0].id == "call_new"


async def test_loop_keeps_a_good_id_and_gives_a_colliding_one_a_new():
    pair = [RequestedCall("call_1", "note_create", "{}")] * 2
    told, _ = await drain(ScriptedProvider(calls(*pair), says("ok")))
    first, second = of(told, events.ToolUse)[0].calls
    assert first.id == "call_1"
    assert second.id not in {"call_1", ""}


@pytest.mark.parametrize("arguments", ["", "null", "  "])
async def test_tool_use_shows_an_object_where_the_model_sent_nothing(arguments):
    told, _ = await drain(ScriptedProvider(calls(("note_list", arguments)), says("ok")))
    assert of(told, events.ToolUse)[0].calls[0].arguments == "{}"


async def test_loop_takes_a_crashed_run_on_from_its_open_calls():
    was_running = ToolCall("call_1", "note_create", "{}")
    waiting = ToolCall("call_2", "note_create", "{}")
    said = AssistantMessage("", calls=(was_running, waiting))
    pending = (PendingCall(was_running, was_running=True), PendingCall(waiting))
    last_id = uuid4()
    progress = Progress((UserMessage("a"), said), 4, pending, message_id=last_id)
    tools = Tools()
    provider = ScriptedProvider(says("ok"))
    told, ended = await drain(provider, tools, progress)
    assert names(told)[:3] == ["tool_result", "tool_started", "tool_result"]
    assert (told[0].status, told[0].content) == ("unknown", notices.UNKNOWN)
    assert tools.ran == [waiting]
    assert of(told, events.MessageCompleted)[0].iteration == 5
    assert ended.message_id != last_id


async def test_loop_repeats_a_call_that_was_running_where_that_is_harmless():
    call = ToolCall("call_1", "note_search", "{}")
    progress = Progress(
        (UserMessage("a"), AssistantMessage("", calls=(call,))), 1, (PendingCall(call, True),)
    )
    tools = Tools()
    await drain(
        ScriptedProvider(says("ok")), tools, progress, repeatable=lambda name: name == "note_search"
    )
    assert tools.ran == [call]


async def test_loop_writes_an_unfinished_message_anew_under_its_id():
    open_id = uuid4()
    progress = Progress((UserMessage("a"),), open_message_id=open_id)
    told, ended = await drain(ScriptedProvider(says("ok")), progress=progress)
    assert {event.message_id for event in told} == {open_id}
    assert ended.message_id == open_id


async def test_only_the_first_message_takes_the_unfinished_ones_id():
    open_id = uuid4()
    progress = Progress((UserMessage("a"),), open_message_id=open_id)
    told, _ = await drain(ScriptedProvider(calls(CREATE), says("ok")), progress=progress)
    first, second = of(told, events.MessageCompleted)
    assert first.message_id == open_id != second.message_id


async def test_loop_ends_at_once_where_only_the_end_was_missing():
    provider = ScriptedProvider(says("never"))
    message_id = uuid4()
    progress = Progress((UserMessage("a"), AssistantMessage("answer")), 1, message_id=message_id)
    told, ended = await drain(provider, progress=progress)
    assert told == []
    assert ended == LoopEnded("end_turn", message_id, 1)
    assert provider.requests == []


async def test_loop_runs_nothing_that_the_last_call_left_open_before_a_crash():
    call = ToolCall("call_1", "note_create", "{}")
    progress = Progress(
        (UserMessage("a"), AssistantMessage("", calls=(call,))),
        10,
        (PendingCall(call),),
        last_call_done=True,
    )
    tools = Tools()
    told, ended = await drain(ScriptedProvider(says("never")), tools, progress)
    assert [event.status for event in told] == ["skipped"]
    assert tools.ran == []
    assert ended.reason == "max_iterations"


async def test_results_of_an_iteration_take_at_most_their_bytes_together():
    provider = ScriptedProvider(calls(*[CREATE] * 7), says("ok"))
    told, _ = await drain(provider, Tools(CallOutcome("ä" * 6_000)))
    contents = [event.content for event in of(told, events.ToolResult)]
    assert sum(len(content.encode()) for content in contents) <= 64 * 1024
    assert contents[:5] == ["ä" * 6_000] * 5
    assert "[truncated " in contents[5]
    sent = [m.content for m in provider.requests[1].messages if isinstance(m, ToolMessage)]
    assert sent == contents


async def test_the_next_iteration_has_room_for_results_again():
    provider = ScriptedProvider(calls(CREATE), calls(CREATE), says("ok"))
    told, _ = await drain(provider, Tools(CallOutcome("x" * 100)), limits=Limits(results_bytes=100))
    assert [event.content for event in of(told, events.ToolResult)] == ["x" * 100] * 2


async def test_loop_fits_the_history_and_says_so_once():
    turns = [m for n in range(9) for m in (UserMessage(f"{n}"), AssistantMessage("x" * 200))]
    provider = ScriptedProvider(calls(CREATE), says("ok"))
    told, _ = await drain(
        provider,
        progress=Progress((*turns, UserMessage("now"))),
        limits=Limits(history_bytes=1_000),
    )
    assert [notice.code for notice in of(told, events.Notice)] == ["history_trimmed"]
    assert names(told)[0] == "notice"
    assert len(provider.requests[0].messages) < len(turns)


async def test_loop_repairs_the_history_before_each_call_and_says_so():
    dangling = AssistantMessage("", calls=(ToolCall("call_1", "note_create", "{}"),))
    provider = ScriptedProvider(says("ok"))
    told, _ = await drain(
        provider, progress=Progress((UserMessage("a"), dangling, UserMessage("b")))
    )
    assert_valid(provider.requests[0].messages)
    assert [notice.code for notice in of(told, events.Notice)] == ["history_repaired"]


async def test_closing_the_loop_closes_the_upstream_at_once():
    provider = ScriptedProvider(says("a b c d", pieces=4))
    batches = loop(provider)
    await anext(batches)
    assert provider.open == 1
    await batches.aclose()
    assert provider.open == 0


async def test_cancelling_the_task_closes_the_upstream_at_once():
    provider = ScriptedProvider([asyncio.Event()])
    task = asyncio.create_task(drain(provider))
    await provider.opened.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.open == 0


async def test_the_upstream_is_closed_while_tools_run():
    provider = ScriptedProvider(calls(CREATE), says("ok"))

    async def invoke(_call: ToolCall) -> CallOutcome:
        assert provider.open == 0
        return CallOutcome("made")

    await drain(provider, invoke)


requested = st.builds(
    RequestedCall,
    id=st.sampled_from([None, "", "call_1", "call_2"]),
    name=st.sampled_from(["note_create", "nope", ""]),
    arguments=st.sampled_from(["{}", "", '{"a": 1}', '{"a', "[]"]),
)
completions = st.one_of(
    st.builds(
        Completion,
        text=st.sampled_from(["", "words"]),
        thinking=st.sampled_from(["", "hm"]),
        calls=st.lists(requested, min_size=1, max_size=3).map(tuple),
        finish_reason=st.sampled_from(["tool_use", "end_turn", "max_tokens", "refusal"]),
    ),
    st.builds(
        Completion,
        text=st.sampled_from(["", "words"]),
        finish_reason=st.sampled_from(["end_turn", "tool_use", "max_tokens", "pause_turn"]),
    ),
    st.just(Completion(text="half", finish_reason="error", fault=Fault("server_error"))),
)
outcomes = st.builds(
    CallOutcome,
    content=st.sampled_from(["", "made", "x" * 20_000]),
    status=st.sampled_from(["done", "error"]),
    is_error=st.booleans(),
)


@pytest.mark.thorough
@settings(max_examples=150)
@given(st.lists(completions, min_size=1, max_size=12), st.lists(outcomes, min_size=1, max_size=4))
def test_any_run_keeps_its_promises(script, answers):
    provider = ScriptedProvider(*[[completion] for completion in script])
    tools = Tools(*answers)
    told, ended = asyncio.run(drain(provider, tools))

    assert len(provider.requests) <= 11
    assert ended.iterations <= 10
    for request in provider.requests:
        assert_valid(request.messages)
    asked = [call.id for event in of(told, events.ToolUse) for call in event.calls]
    assert [event.tool_call_id for event in of(told, events.ToolResult)] == asked
    assert len(set(asked)) == len(asked)
    assert max(Counter(call.id for call in tools.ran).values(), default=1) == 1
    assert [event.tool_call_id for event in of(told, events.ToolStarted)] == [
        call.id for call in tools.ran
    ]
    assert (ended.reason == "error") == bool(of(told, events.ErrorOccurred))
    folded = fold(told)
    assert all(message.finish_reason for message in folded.messages)
    assert all(call.status != "pending" for m in folded.messages for call in m.calls)


@given(st.integers(0, 30))
def test_a_run_taken_on_at_any_point_never_repeats_a_call_that_had_begun(stop_after):
    """Drop the generator after any number of batches, take the rows' progress, go on."""
    script = [calls(CREATE, CREATE), calls(CREATE), says("ok")]
    tools = Tools()

    async def scenario():
        progress = ASKED
        committed: list = []
        async with aclosing(loop(ScriptedProvider(*script), tools)) as batches:
            while len(committed) < stop_after and (batch := await anext(batches, None)):
                committed.append(batch)
        progress = _progress([item for batch in committed for item in batch])
        rest = script[progress.iterations :] or [says("never")]
        _, ended = await drain(ScriptedProvider(*rest), tools, progress)
        return ended

    ended = asyncio.run(scenario())
    assert ended.reason == "end_turn"
    assert max(Counter(call.id for call in tools.ran).values()) == 1


def _progress(told: list[Any]) -> Progress:
    """What the executor's rows would say after these events."""
    history: list = list(ASKED.history)
    pending: dict[str, PendingCall] = {}
    iterations = 0
    for event in told:
        match event:
            case events.MessageCompleted(completion=completion, calls=made, iteration=iterations):
                history.append(AssistantMessage(completion.text if completion else "", calls=made))
                pending = {call.id: PendingCall(call) for call in made}
            case events.ToolStarted(tool_call_id=call_id):
                pending[call_id] = PendingCall(pending[call_id].call, was_running=True)
            case events.ToolResult(tool_call_id=call_id):
                call = pending.pop(call_id).call
                history.append(ToolMessage(call_id, call.name, event.content))
    return Progress(tuple(history), iterations, tuple(pending.values()))


async def test_loop_ends_as_budget_once_its_tokens_are_used_up():
    spent = Usage(fresh_input=60, output=40)
    provider = ScriptedProvider(calls(("t", {}), usage=spent), says("never reached"))

    told, ended = await drain(provider, limits=Limits(tokens=100))

    assert ended.reason == "budget"
    assert len(provider.requests) == 1
    assert names(told)[-1] == "tool_result"


async def test_loop_lets_an_answer_stand_that_used_the_last_tokens():
    provider = ScriptedProvider(says("Done.", usage=Usage(output=500)))

    _told, ended = await drain(provider, limits=Limits(tokens=100))

    assert ended.reason == "end_turn"


async def test_loop_counts_what_was_used_before_a_crash():
    progress = replace(ASKED, tokens=100)
    provider = ScriptedProvider(says("never reached"))

    _told, ended = await drain(provider, progress=progress, limits=Limits(tokens=100))

    assert (ended.reason, provider.requests) == ("budget", [])
