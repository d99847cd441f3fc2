from hypothesis import given
from hypothesis import strategies as st

from chat.loop.repair import MISSING_RESULT, PROMPT, repair
from chat.types import (
    AssistantMessage,
    HistoryMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.chat.loop.rules import assert_valid, histories, transcripts

SEARCH = ToolCall("call_1", "note_search", '{"q": "milk"}')
LIST = ToolCall("call_2", "note_list", "{}")


@given(histories)
def test_repair_gives_a_valid_history_whatever_it_is_given(history):
    assert_valid(repair(history).messages)


@given(histories)
def test_repair_changes_nothing_the_second_time(history):
    once = repair(history)
    assert repair(once.messages).messages == once.messages
    assert repair(once.messages).repairs == ()


@given(transcripts(), st.data())
def test_repair_makes_every_prefix_of_a_transcript_valid(transcript, data):
    prefix = transcript[: data.draw(st.integers(0, len(transcript)))]
    assert_valid(repair(prefix).messages)


@given(transcripts())
def test_repair_leaves_a_valid_history_alone(transcript):
    history = (SystemMessage("Be brief."), *transcript, UserMessage("next"))
    assert repair(history).messages == history


def test_repair_fills_in_a_result_for_each_call_that_a_stop_left_open():
    history: list[HistoryMessage] = [
        UserMessage("find milk"),
        AssistantMessage("", calls=(SEARCH, LIST)),
        ToolMessage("call_1", "note_search", "found"),
        UserMessage("hello"),
    ]
    fixed = repair(history)
    assert fixed.messages == (
        *history[:3],
        ToolMessage("call_2", "note_list", MISSING_RESULT, is_error=True),
        history[3],
    )
    assert fixed.repairs == ("missing_result_filled",)


def test_repair_moves_a_late_result_behind_its_call_and_adds_no_second_one():
    late = ToolMessage("call_1", "note_search", "found")
    history: list[HistoryMessage] = [
        UserMessage("a"),
        AssistantMessage("", calls=(SEARCH,)),
        UserMessage("b"),
        late,
    ]
    fixed = repair(history)
    assert fixed.messages == (history[0], history[1], late, history[2])
    assert fixed.repairs == ("result_moved",)


def test_repair_drops_orphans_and_second_results():
    result = ToolMessage("call_1", "note_search", "found")
    history: list[HistoryMessage] = [
        UserMessage("a"),
        ToolMessage("call_9", "note_list", "of nothing"),
        AssistantMessage("", calls=(SEARCH,)),
        result,
        ToolMessage("call_1", "note_search", "again"),
    ]
    fixed = repair(history)
    assert fixed.messages == (history[0], history[2], result)
    assert fixed.repairs == ("orphan_result_dropped",)


def test_repair_merges_what_local_models_refuse():
    fixed = repair(
        [
            SystemMessage("One."),
            UserMessage("a"),
            SystemMessage("Two."),
            UserMessage("b"),
            AssistantMessage(" \n"),
            UserMessage("c"),
        ]
    )
    assert fixed.messages == (SystemMessage("One.\n\nTwo."), UserMessage("a\n\nb\n\nc"))


def test_repair_replaces_arguments_that_are_no_object_and_names_that_vendors_refuse():
    broken = ToolCall("call_1", "notes.create", '{"title": "A", "content": "unter')
    error = ToolMessage("call_1", "notes.create", "not JSON", is_error=True)
    fixed = repair([UserMessage("a"), AssistantMessage("", calls=(broken,)), error])
    assert fixed.messages[1:] == (
        AssistantMessage("", calls=(ToolCall("call_1", "notes_create", "{}"),)),
        ToolMessage("call_1", "notes_create", "not JSON", is_error=True),
    )
    assert fixed.repairs == ("call_rewritten",)


def test_repair_asks_to_continue_where_the_last_word_is_the_models():
    fixed = repair([UserMessage("a"), AssistantMessage("half an ans")])
    assert fixed.messages[-1] == UserMessage(PROMPT)
    assert repair([]).messages == (UserMessage(PROMPT),)
