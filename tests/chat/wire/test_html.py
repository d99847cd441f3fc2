"""The HTML stream: what a page is sent gives the page of a reload, however it arrives."""

import json
import re
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.events import (
    CallShown,
    Done,
    ErrorOccurred,
    MessageCompleted,
    Notice,
    RunStarted,
    Snapshot,
    TextDelta,
    ThinkingDelta,
    ToolResult,
    ToolStarted,
    ToolUse,
)
from chat.loop.folding import Folded, fold
from chat.types import Touched
from chat.wire.html import HtmlStream
from chat.wire.shown import run_shown
from tests.chat.wire.page import MiniPage
from tests.chat.wire.parser import parse
from tests.chat.wire.samples import FAILED, FIRST, QUESTION, RUN, SECOND, STORY, logged
from web.markdown import render

NOTE = UUID(int=77)
STARTED = RunStarted(
    run_id=RUN, conversation_id=UUID(int=2), message_id=QUESTION, model="m", provider="p"
)
CALLS = ToolUse(
    calls=(
        CallShown(id='"><b id="x">', name="note_search", arguments='{"query": "milk <b>"}'),
        CallShown(id="two", name="<script>", arguments="[1, 2"),
    )
)
LONG = (
    STARTED,
    ThinkingDelta(message_id=FIRST, text="Look <i>first</i>, "),
    ThinkingDelta(message_id=FIRST, text="then write."),
    TextDelta(message_id=FIRST, text="# Plan\n\nSee **th"),
    TextDelta(message_id=FIRST, text="is**:\n\n- one 🎉\n- two\n\n```py"),
    TextDelta(message_id=FIRST, text="thon\nprint('<b>')\n```\n"),
    MessageCompleted(message_id=FIRST, finish_reason="tool_use"),
    CALLS,
    ToolStarted(tool_call_id='"><b id="x">'),
    ToolResult(
        tool_call_id='"><b id="x">',
        tool="note_search",
        content='{"found": "<b>"}',
        is_error=False,
        status="done",
        duration_ms=41,
        summary="1 result",
        touched=(Touched("note", str(NOTE), "Milk <&>"), Touched("note", "../../logout", "x")),
    ),
    ToolStarted(tool_call_id="two"),
    ToolResult(
        tool_call_id="two",
        tool="<script>",
        content="No such tool.\r\ndata: x",
        is_error=True,
        status="error",
        duration_ms=1200,
    ),
    Notice(code="retried", text="Tried <again>."),
    TextDelta(message_id=SECOND, text="| a | b |\n|---|--:|\n| 1 | 2"),
    TextDelta(message_id=SECOND, text=" |\n\ndone"),
    MessageCompleted(message_id=SECOND, finish_reason="end_turn"),
    Done(reason="end_turn", run_id=RUN, message_id=SECOND),
)
STOPPED = (*LONG[:5], Done(reason="stopped", run_id=RUN, message_id=FIRST))
BROKEN = (*LONG[:8], FAILED, Done(reason="error", run_id=RUN, message_id=FIRST))
ENDED_EARLY = (STARTED, FAILED, Done(reason="error", run_id=RUN))
RUNS = {"story": STORY, "long": LONG, "stopped": STOPPED, "broken": BROKEN, "early": ENDED_EARLY}


def whole(events) -> str:
    """The page of a reload after these events."""
    folded = fold(events)
    html = {message.id: render(message.text) for message in folded.messages}
    return run_shown(folded, run_id=RUN, html=html).html()


def empty() -> MiniPage:
    return MiniPage(run_shown(Folded(), run_id=RUN, html={}).html())


def received(page: MiniPage, stream: HtmlStream, batches) -> None:
    for batch in batches:
        for event in parse(stream.encode(batch)):
            page.apply(event.name, event.json)


def bare(html: str) -> str:
    return re.sub(r">\s+<", "><", html.strip())


@pytest.mark.thorough
@pytest.mark.parametrize("name", RUNS)
@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, len(LONG)), max_size=8))
def test_live_page_equals_the_reloaded_one_however_events_are_batched(name, cuts):
    numbered = logged(*RUNS[name])
    edges = sorted({0, len(numbered), *(min(cut, len(numbered)) for cut in cuts)})
    page = empty()
    batches = [numbered[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    received(page, HtmlStream(RUN), batches)
    assert bare(page.html) == bare(whole(RUNS[name]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", RUNS)
@settings(max_examples=15, deadline=None)
@given(lost_after=st.integers(0, len(LONG)), seen=st.integers(0, len(LONG)))
def test_page_that_connects_again_has_nothing_twice_and_misses_nothing(name, lost_after, seen):
    numbered = logged(*RUNS[name])
    page = empty()
    received(page, HtmlStream(RUN), [numbered[:1], *([item] for item in numbered[1:lost_after])])
    received(page, HtmlStream(RUN), [numbered[:seen], *([item] for item in numbered[seen:])])
    assert bare(page.html) == bare(whole(RUNS[name]))


@pytest.mark.parametrize("length", range(1, len(LONG)))
def test_page_in_the_middle_of_a_run_shows_what_has_come(length):
    page = empty()
    received(page, HtmlStream(RUN), [[item] for item in logged(*LONG[:length])])
    seen = page.inner(f"m-{FIRST}-text") if length > 1 else ""
    text = "".join(
        e.text for e in LONG[:length] if isinstance(e, TextDelta) and e.message_id == FIRST
    )
    assert re.sub(r"<[^>]+>", "", seen).split() == re.sub(r"<[^>]+>", "", render(text)).split()


def test_new_attempt_shows_its_text_in_the_place_of_the_unfinished_one():
    first = logged(STARTED, TextDelta(message_id=FIRST, text="half an ans"))
    again = (STARTED, TextDelta(message_id=FIRST, text="A whole answer."), *LONG[-1:])
    page = empty()
    stream = HtmlStream(RUN)
    received(page, stream, [first[:1], first[1:]])
    received(page, stream, [[item] for item in logged(*again, attempt=2)])
    assert bare(page.html) == bare(whole([e.event for e in first] + list(again)))
    assert "half" not in page.html
    assert "A whole answer." in page.html


def test_snapshot_is_shown_and_gone_on_from():
    state = fold(LONG[:5]).state()
    page = empty()
    rest = (Snapshot(state=state, covers="1-5"), *LONG[5:])
    received(page, HtmlStream(RUN), [[item] for item in logged(*rest, first=5)])
    assert bare(page.html) == bare(whole(LONG))


def test_frames_carry_the_id_of_the_last_event_of_their_batch():
    stream = HtmlStream(RUN)
    frames = parse(stream.encode(logged(*LONG[:4])))
    assert {frame.id for frame in frames} == {"1-4"}
    assert [frame.name for frame in frames] == ["fragment", "block"]


def test_finished_blocks_are_not_sent_again():
    stream = HtmlStream(RUN)
    stream.encode(logged(STARTED, TextDelta(message_id=FIRST, text="# One\n\ntwo")))
    sent = parse(stream.encode(logged(TextDelta(message_id=FIRST, text=" more"), first=3)))
    assert [frame.json["index"] for frame in sent] == [1]
    assert "One" not in json.dumps([frame.json for frame in sent])


def test_nothing_a_model_or_tool_wrote_chooses_a_target():
    stream = HtmlStream(RUN)
    targets = set()
    for item in logged(*LONG):
        targets |= {frame.json.get("target", "") for frame in parse(stream.encode([item]))}
    parts = "messages|notices|end|text|thinking|thought|calls|\\d+"
    ours = f"(run|m|call)-({RUN}|{FIRST}|{SECOND})(-({parts}))?"
    assert all(re.fullmatch(ours, target) for target in targets - {""})


def test_what_models_and_tools_write_is_escaped_everywhere():
    page = whole(LONG)
    assert "<script" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page
    assert "logout" not in page
    assert f'href="/notes/{NOTE}/"' in page


def test_call_line_says_what_it_is_about_what_came_and_how_long_it_took():
    text = re.sub(r"<[^>]+>", "", whole(LONG))
    assert "note_search milk &lt;b&gt; · 1 result · 41 ms" in re.sub(r"\s+", " ", text)
    assert "1.2 s" in text


def test_arguments_and_results_are_pretty_where_they_are_json_and_as_they_are_elsewhere():
    page = whole(LONG)
    assert "{\n  &quot;query&quot;: &quot;milk &lt;b&gt;&quot;\n}" in page
    assert "[1, 2" in page


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("stopped", "You stopped this answer."),
        ("max_iterations", "all the model calls"),
        ("deadline", "longer than it may"),
    ],
)
def test_ends_that_are_not_fine_are_said(reason, said):
    assert said in whole((STARTED, Done(reason=reason, run_id=RUN)))


def test_error_is_shown_with_the_providers_words():
    error = ErrorOccurred(
        code="provider_error", message="No <credit>.", provider="acme", status=402
    )
    page = whole((STARTED, error, Done(reason="error", run_id=RUN)))
    assert "No &lt;credit&gt;." in page
    assert "acme" in page
    assert "402" in page
