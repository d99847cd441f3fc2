"""The rules of Chat Completions servers for a history, and random histories that break them."""

import json
import re

from hypothesis import strategies as st

from chat.types import (
    AssistantMessage,
    HistoryMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)


def assert_valid(messages: tuple[HistoryMessage, ...]) -> None:
    """What OpenAI and the stricter templates of local models refuse, asserted away."""
    rest = list(messages)
    if isinstance(rest[0], SystemMessage):
        assert rest[0].text.strip()
        del rest[0]
    assert rest, "nothing to answer"
    assert isinstance(rest[0], UserMessage)
    assert isinstance(rest[-1], UserMessage | ToolMessage)
    open_ids: list[str] = []
    for before, message in zip([None, *rest], rest, strict=False):
        if isinstance(message, ToolMessage):
            assert message.call_id in open_ids, "a result without its call"
            open_ids.remove(message.call_id)
            continue
        assert not open_ids, "a call without its result"
        assert not isinstance(message, SystemMessage)
        if isinstance(message, UserMessage):
            assert message.text.strip()
            assert not isinstance(before, UserMessage)
            continue
        assert message.text.strip() or message.calls
        assert not isinstance(before, AssistantMessage) or before.details or message.details
        open_ids = [call.id for call in message.calls]
        assert len(set(open_ids)) == len(open_ids)
        for call in message.calls:
            assert isinstance(json.loads(call.arguments), dict)
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call.name)
    assert not open_ids


texts = st.sampled_from(["", " \n", "a", "milk and eggs", "käse ☕", "x" * 300])
ids = st.sampled_from(["call_1", "call_2", "call_3", "c4"])
names = st.sampled_from(["note_search", "note.list", "", "日本語", "n" * 80])
arguments = st.sampled_from(["{}", '{"q": "x"}', "", "null", "[]", '{"title": "unter', "x" * 400])
tool_calls = st.builds(ToolCall, id=ids, name=names, arguments=arguments)
details = st.sampled_from([{}, {}, {"reasoning_content": "because"}])
messages = st.one_of(
    st.builds(SystemMessage, texts),
    st.builds(UserMessage, texts),
    st.builds(
        AssistantMessage,
        text=texts,
        calls=st.lists(tool_calls, max_size=3).map(tuple),
        details=details,
    ),
    st.builds(ToolMessage, call_id=ids, name=names, content=texts, is_error=st.booleans()),
)
#: Anything at all: what crashes, imports, edits and other vendors may leave behind.
histories = st.lists(messages, max_size=14)


@st.composite
def transcripts(draw) -> list[HistoryMessage]:
    """What an undisturbed conversation looks like; any prefix of it may meet a provider."""
    transcript: list[HistoryMessage] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        transcript.append(UserMessage(draw(st.text(min_size=1, max_size=40)) + "?"))
        for _ in range(draw(st.integers(0, 3))):
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                long_text = "y" * draw(st.integers(0, 3_000))
                calls.append(ToolCall(f"call_{number}", "note_read", json.dumps({"q": long_text})))
            transcript.append(AssistantMessage("", calls=tuple(calls)))
            for call in calls:
                content = draw(st.text(max_size=20)) + "z" * draw(st.integers(0, 4_000))
                transcript.append(ToolMessage(call.id, call.name, content))
        transcript.append(AssistantMessage("answer" + "w" * draw(st.integers(0, 4_000))))
    return transcript
