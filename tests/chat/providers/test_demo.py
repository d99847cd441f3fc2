"""The demo provider, driven as the loop drives it, against tools that answer like the real ones."""

import json
import math
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.loop import notices
from chat.loop.repair import repair
from chat.providers.demo import DemoProvider
from chat.providers.demo_script import ABOUT, ALL_SAID, next_turn
from chat.types import (
    AssistantMessage,
    CallDenied,
    Completion,
    HistoryMessage,
    ModelRequest,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tools.definitions import ToolContext, ToolSpec
from tools.invocation import invoke
from tools.policy import Policy
from tools.registry import registry

NAMES = ("note_create", "note_search", "note_read", "note_update", "note_list", "current_time")
TOOLS = tuple(ToolSpec(name=name, description=name) for name in NAMES)
GROCERIES = {"id": str(uuid.UUID(int=7)), "title": "Groceries", "content": "- milk\n- eggs"}
ANSWERS = {
    "note_create": GROCERIES | {"version": 1},
    "note_search": {"results": [GROCERIES | {"excerpt": "- milk"}], "total": 1},
    "note_read": GROCERIES | {"version": 1},
    "note_update": {"id": GROCERIES["id"], "version": 2},
    "note_list": {"results": [GROCERIES, {"id": "2", "title": "Ideas"}]},
    "current_time": {"time": "2026-12-01T10:00:00Z"},
}


def converse(text, *, answers=ANSWERS, history=(), tools=TOOLS):
    """Play a request to its end: the calls made as (name, arguments), and the last text."""
    messages: list[HistoryMessage] = [*history, UserMessage(text)]
    calls: list[tuple[str, dict]] = []
    for _ in range(20):
        turn = next_turn(ModelRequest(model="demo", messages=tuple(messages), tools=tools))
        if not turn.tool:
            return calls, turn.text
        calls.append((turn.tool, turn.arguments))
        call = ToolCall(id=f"c{len(calls)}", name=turn.tool, arguments=json.dumps(turn.arguments))
        answer = answers[turn.tool]
        result = (
            answer
            if isinstance(answer, ToolMessage)
            else ToolMessage(call.id, call.name, json.dumps(answer))
        )
        messages += [AssistantMessage(turn.text, calls=(call,)), result]
    raise AssertionError("the demo never ends")


def test_demo_makes_and_finds_a_note_in_one_request():
    calls, text = converse("make a note called Groceries with milk and eggs, then find it")
    assert calls == [
        ("note_create", {"title": "Groceries", "content": "- milk\n- eggs"}),
        ("note_search", {"query": "Groceries"}),
    ]
    assert "Found for **Groceries**" in text
    assert "- **Groceries**" in text


@pytest.mark.parametrize(
    ("request_text", "title", "content"),
    [
        ("Make a note called Groceries.", "Groceries", ""),
        ('Please create a new note titled "Milk and eggs" with butter', "Milk and eggs", "butter"),
        ("create note Trip: book the ferry to Brest", "Trip", "book the ferry to Brest"),
        ('make a note called A with "b, then c"', "A", "b, then c"),
        ("could you make me a note named x, saying hello", "x", "hello"),
    ],
)
def test_demo_takes_title_and_content_from_a_request(request_text, title, content):
    calls, _ = converse(request_text)
    assert calls == [("note_create", {"title": title, "content": content})]


@pytest.mark.parametrize(
    "request_text",
    [
        "find groceries",
        "search for Groceries",
        "Find my note about groceries!",
        "look up groceries",
    ],
)
def test_demo_searches_and_names_the_hit(request_text):
    calls, text = converse(request_text)
    assert [(name, arguments["query"].lower()) for name, arguments in calls] == [
        ("note_search", "groceries")
    ]
    assert "**Groceries**: - milk" in text


def test_demo_says_so_when_nothing_is_found():
    _, text = converse("find Atlantis", answers=ANSWERS | {"note_search": {"results": []}})
    assert text == "I found nothing for **Atlantis**."


def test_demo_reads_a_note_by_way_of_a_search():
    calls, text = converse("read Groceries")
    assert calls == [
        ("note_search", {"query": "Groceries"}),
        ("note_read", {"note_id": GROCERIES["id"]}),
    ]
    assert "- milk\n- eggs" in text


def test_demo_appends_with_the_id_that_the_search_gave():
    calls, text = converse('append "bread" to Groceries')
    update = {"note_id": GROCERIES["id"], "mode": "append", "content": "\n- bread"}
    assert calls == [("note_search", {"query": "Groceries"}), ("note_update", update)]
    assert text == "Added to **Groceries**: bread"


def test_demo_appends_to_the_note_just_made_without_a_search():
    calls, _ = converse("make a note called Groceries and then add bread to it")
    assert [name for name, _ in calls] == ["note_create", "note_update"]


@pytest.mark.parametrize(
    ("request_text", "tool"),
    [
        ("list my notes", "note_list"),
        ("what notes do I have?", "note_list"),
        ("What time is it?", "current_time"),
        ("what's the date", "current_time"),
    ],
)
def test_demo_calls_the_tool_that_a_question_needs(request_text, tool):
    calls, _ = converse(request_text)
    assert [name for name, _ in calls] == [tool]


@pytest.mark.parametrize(
    "request_text", ["what can you do?", "hello", "", "\0", "Write a poem", "x " * 50_000]
)
def test_demo_says_that_it_is_scripted_when_it_does_not_understand(request_text):
    calls, text = converse(request_text)
    assert (calls, text) == ([], ABOUT)
    assert "OPENAI_BASE_URL" in text


def test_demo_stops_with_the_reason_when_a_call_fails():
    refusal = ToolMessage("c1", "note_create", "Not run: it needs approval.", is_error=True)
    calls, text = converse(
        "make a note called A, then find it", answers=ANSWERS | {"note_create": refusal}
    )
    assert [name for name, _ in calls] == ["note_create"]
    assert text == "`note_create` did not work: Not run: it needs approval."


@pytest.mark.parametrize(
    ("reason", "said"),
    [("", "You denied note_create."), ("no farm", "You denied note_create: no farm.")],
)
def test_demo_does_the_other_steps_after_a_denial(reason, said):
    content = notices.denied(CallDenied(reason, go_on=True))
    denied = ToolMessage("c1", "note_create", content, is_error=True)
    calls, text = converse(
        "make a note called Farm, then find it and list my notes",
        answers=ANSWERS | {"note_create": denied, "note_search": {"results": []}},
    )
    assert [name for name, _ in calls] == ["note_create", "note_search", "note_list"]
    assert calls[1][1] == {"query": "Farm"}
    assert text.startswith(f"{said}\n\nI found nothing for **Farm**.\n\nYour notes:")


def stopped(text, *said):
    """What a continuation of an answer that was stopped is asked for."""
    spoken = [AssistantMessage(each) for each in said]
    messages = repair([UserMessage(text), *spoken]).messages
    return next_turn(ModelRequest(model="demo", messages=messages, tools=TOOLS))


@pytest.mark.parametrize("cut", [3, 40, 41, 120, 300])
def test_demo_goes_on_where_it_was_stopped(cut):
    said, left = ABOUT[:cut], ABOUT[cut:]
    assert stopped("hello", said).text == left.lstrip()
    assert stopped("hello", said, left[:50]).text == left[50:].lstrip()


def test_demo_goes_on_with_a_call_that_it_was_stopped_before():
    turn = stopped("find milk", "I search ")
    assert (turn.text, turn.tool, turn.arguments) == (
        "for **milk**.",
        "note_search",
        {"query": "milk"},
    )


def test_demo_goes_on_from_the_results_that_are_there():
    call = ToolCall("a", "note_search", "{}")
    result = ToolMessage("a", "note_search", json.dumps({"results": []}))
    asked, searched = UserMessage("find milk"), AssistantMessage("I search.", calls=(call,))
    messages = repair([asked, searched, result, AssistantMessage("I found ")]).messages
    turn = next_turn(ModelRequest(model="demo", messages=messages, tools=TOOLS))
    assert (turn.text, turn.tool) == ("nothing for **milk**.", "")


def test_demo_has_nothing_to_add_to_a_whole_answer_and_repeats_none_that_was_another():
    assert stopped("hello", ABOUT).text == ALL_SAID
    assert stopped("hello", "Something else").text == ABOUT
    assert next_turn(ModelRequest(model="demo", messages=(UserMessage("continue"),))).text == ABOUT


def test_demo_calls_no_tool_that_is_not_offered():
    calls, text = converse("list my notes", tools=())
    assert calls == []
    assert "`note_list`" in text


def test_demo_answers_in_words_when_tools_are_forbidden():
    request = ModelRequest(
        model="demo", messages=(UserMessage("list notes"),), tools=TOOLS, tool_choice="none"
    )
    assert next_turn(request).tool == ""


def test_demo_looks_only_at_what_follows_the_last_user_message():
    history = (
        SystemMessage("Be kind."),
        UserMessage("list my notes"),
        AssistantMessage("", calls=(ToolCall("a", "note_list", "{}"),)),
        ToolMessage("a", "note_list", "not json"),
        AssistantMessage("There are none."),
    )
    calls, _ = converse("find milk", history=history)
    assert [name for name, _ in calls] == ["note_search"]


@given(st.text(max_size=200), st.sampled_from(["", "make a note ", "find ", "append ", "read "]))
def test_demo_survives_any_request_and_any_result(text, start):
    odd = {name: ToolMessage("x", name, text) for name in NAMES}
    converse(start + text, answers=odd)


async def test_demo_streams_word_by_word_and_ends_with_a_completion():
    request = ModelRequest(model="demo", messages=(UserMessage("find milk"),), tools=TOOLS)
    batches = [batch async for batch in DemoProvider(pace=0).stream(request)]
    deltas = [delta for batch in batches for delta in batch]
    *words, last = deltas
    assert isinstance(last, Completion)
    assert len(words) > 2
    assert "".join(word.text for word in words if isinstance(word, TextDelta)) == last.text
    (call,) = last.calls
    assert (call.name, json.loads(call.arguments)) == ("note_search", {"query": "milk"})
    assert last.finish_reason == "tool_use"
    assert last.usage is not None
    assert last.usage.estimated


async def test_demo_story_plays_with_the_real_tools(user, units):
    """Every call that it makes is one that the tools accept, and it reads what they answer."""
    messages: list[HistoryMessage] = []
    texts = []
    for said in (
        "make a note called Groceries with milk and eggs, then find it",
        'append "bread" to Groceries',
        "read Groceries",
        "list my notes",
        "what time is it?",
    ):
        messages.append(UserMessage(said))
        while True:
            made = ModelRequest("demo", tuple(messages), registry.definitions())
            turn = next_turn(made)
            if not turn.tool:
                texts.append(turn.text)
                messages.append(AssistantMessage(turn.text))
                break
            call = ToolCall(f"c{len(messages)}", turn.tool, json.dumps(turn.arguments))
            context = ToolContext(user_id=user.pk, deadline=math.inf)
            outcome = await invoke(
                name=call.name, arguments=call.arguments, context=context, policy=Policy()
            )
            assert not outcome.is_error, outcome.content
            messages += [
                AssistantMessage(turn.text, calls=(call,)),
                ToolMessage(call.id, call.name, outcome.content),
            ]
    made_and_found, appended, read, listed, time = texts
    assert "Found for **Groceries**:\n\n- **Groceries**" in made_and_found
    assert appended == "Added to **Groceries**: bread"
    assert read == "**Groceries** says:\n\n- milk\n- eggs\n- bread"
    assert listed == "Your notes:\n\n- **Groceries**"
    assert "T" in time
    assert "day" in time
