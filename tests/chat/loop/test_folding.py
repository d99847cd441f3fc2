from uuid import uuid4

import msgspec

from chat.events import Done, RunStarted, Snapshot, TextDelta, from_data, to_data
from chat.loop.folding import fold
from chat.loop.run_loop import LoopEnded, run_loop
from chat.testing import ScriptedProvider, calls, fails, says
from chat.types import CallOutcome, Progress, ToolCall, Touched, Usage, UserMessage


async def _invoke(call: ToolCall) -> CallOutcome:
    touched = (Touched("note", "1", "Groceries"),)
    return CallOutcome(f"ran {call.name}", duration_ms=3, summary="made it", touched=touched)


async def _told(*script) -> list:
    started = RunStarted(
        run_id=uuid4(), conversation_id=uuid4(), message_id=uuid4(), model="m", provider="p"
    )
    batches = run_loop(
        provider=ScriptedProvider(*script),
        model="m",
        system="",
        progress=Progress((UserMessage("a"),)),
        invoke=_invoke,
    )
    told = [item async for batch in batches for item in batch]
    ended = told.pop()
    assert isinstance(ended, LoopEnded)
    done = Done(reason=ended.reason, run_id=started.run_id, message_id=ended.message_id)
    return [started, *told, done]


async def test_fold_says_what_the_run_was():
    usage = Usage(fresh_input=5, output=2)
    script = [
        calls(("note_create", {"title": "A"}), text="Making it.", usage=usage),
        says("Made.", thinking="easy", usage=usage),
    ]
    folded = fold(await _told(*script))
    first, second = folded.messages
    assert (first.text, first.finish_reason, second.text) == ("Making it.", "tool_use", "Made.")
    assert second.thinking == "easy"
    [call] = first.calls
    assert (call.name, call.arguments, call.status) == ("note_create", '{"title": "A"}', "done")
    assert (call.result, call.summary, call.duration_ms) == ("ran note_create", "made it", 3)
    assert folded.usage == Usage(fresh_input=10, output=4)
    assert (folded.stop_reason, folded.error) == ("end_turn", None)


async def test_fold_keeps_the_error_and_the_text_before_it():
    folded = fold(await _told(fails("overloaded", text="Half")))
    assert folded.error is not None
    assert folded.error.message == "overloaded"
    assert folded.messages[0].text == "Half"
    assert folded.stop_reason == "error"


async def test_fold_of_stored_events_equals_that_of_live_ones():
    told = await _told(calls(("note_create", "")), says("", finish_reason="max_tokens"))
    stored = [from_data(event.name, msgspec.json.decode(_json(event))) for event in told]
    assert fold(stored) == fold(told)


async def test_snapshot_stands_for_all_events_before_it():
    told = await _told(calls(("note_create", "")), says("words"), fails())
    for cut in range(len(told)):
        before = fold(told[:cut])
        state = msgspec.json.decode(msgspec.json.encode(before.state()))
        snapshot = Snapshot(state=state, covers=f"1-{cut}")
        assert fold([snapshot, *told[cut:]]) == fold(told)


def test_a_new_attempt_writes_the_unfinished_message_anew():
    message_id = uuid4()
    started = RunStarted(
        run_id=uuid4(), conversation_id=uuid4(), message_id=uuid4(), model="m", provider="p"
    )
    half, whole = (TextDelta(message_id=message_id, text=text) for text in ("Half", "Whole."))
    [message] = fold([started, half, started, whole]).messages
    assert message.text == "Whole."


def _json(event) -> bytes:
    return msgspec.json.encode(to_data(event))
