from hypothesis import given
from hypothesis import strategies as st

from chat.loop.repair import repair
from chat.loop.window import MIN_PIECE_BYTES, fit, shorten, size
from chat.types import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from tests.chat.loop.rules import assert_valid, histories, transcripts


def total(messages) -> int:
    return sum(map(size, messages))


@given(transcripts(), st.data(), st.integers(4_000, 40_000))
def test_window_of_any_prefix_is_valid_and_fits(transcript, data, limit):
    prefix = transcript[: data.draw(st.integers(0, len(transcript)))]
    history = repair([SystemMessage("Be brief."), *prefix]).messages
    window = fit(history, limit=limit)
    assert_valid(window.messages)
    assert total(window.messages) <= limit
    assert window.messages[0] == SystemMessage("Be brief.")


@given(histories, st.integers(0, 2_000))
def test_window_is_valid_and_never_grows_whatever_it_is_given(history, limit):
    history = repair(history).messages
    window = fit(history, limit=limit)
    assert_valid(window.messages)
    assert total(window.messages) <= total(history)


@given(transcripts(), st.integers(0, 40_000))
def test_window_keeps_or_drops_whole_turns(transcript, limit):
    history = repair(transcript).messages
    window = fit(history, limit=limit)
    if not window.shortened:
        assert history[len(history) - len(window.messages) :] == window.messages
        assert isinstance(window.messages[0], UserMessage)
        assert window.dropped_turns == sum(
            isinstance(m, UserMessage) for m in history[: -len(window.messages)]
        )


def test_window_keeps_all_that_fits_exactly():
    history = (UserMessage("aa"), AssistantMessage("bb"), UserMessage("cc"))
    assert fit(history, limit=6).messages == history
    assert fit(history, limit=5).messages == (UserMessage("cc"),)
    assert fit(history, limit=5).dropped_turns == 1


def test_window_shortens_the_largest_results_first_with_a_marker():
    turn = (
        UserMessage("read both"),
        AssistantMessage("", calls=(ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}"))),
        ToolMessage("a", "read", "x" * 5_000),
        ToolMessage("b", "read", "short"),
    )
    window = fit(turn, limit=1_000)
    assert total(window.messages) <= 1_000
    assert window.shortened
    assert window.messages[3] == turn[3]
    assert isinstance(shortened := window.messages[2], ToolMessage)
    assert "[truncated 4" in shortened.content


def test_window_cuts_no_more_than_it_must():
    calls = tuple(ToolCall(letter, "read", "{}") for letter in "abc")
    turn = (
        UserMessage("read all"),
        AssistantMessage("", calls=calls),
        ToolMessage("a", "read", "x" * 5_000),
        ToolMessage("b", "read", "y" * 400),
        ToolMessage("c", "read", "z" * 5_000),
    )
    window = fit(turn, limit=4_000)
    assert 3_990 <= total(window.messages) <= 4_000
    assert window.messages[3] == turn[3]


def test_window_drops_the_oldest_iterations_of_a_turn_that_no_shortening_fits():
    turn: list = [UserMessage("write ten notes")]
    for number in range(10):
        call = ToolCall(f"call_{number}", "note_create", f'{{"content": "{"x" * 4_000}"}}')
        turn += [
            AssistantMessage("", calls=(call,)),
            ToolMessage(call.id, "note_create", f"made {number}"),
        ]
    window = fit(turn, limit=10_000)
    assert total(window.messages) <= 10_000
    assert window.messages[0] == turn[0]
    assert window.messages[-1] == turn[-1]
    assert len(window.messages) == 5


def test_window_shortens_arguments_and_texts_as_a_last_resort():
    call = ToolCall("a", "note_create", f'{{"content": "{"x" * 9_000}"}}')
    turn = (
        UserMessage("u" * 9_000),
        AssistantMessage("t" * 9_000, calls=(call,), details={"raw": "d" * 9_000}),
        ToolMessage("a", "note_create", "made"),
    )
    window = fit(turn, limit=2_000)
    assert total(window.messages) <= 2_000
    assert_valid(window.messages)


@given(st.text(), st.integers(0, 60))
def test_shorten_stays_within_its_bytes_and_on_a_character_boundary(text, limit):
    short = shorten(text, limit)
    assert len(short.encode()) <= limit
    assert short == text or len(text.encode()) > limit


def test_shorten_says_how_many_bytes_are_missing():
    short = shorten("ä" * 1_000, MIN_PIECE_BYTES)
    kept, marker = short.split("\n")
    assert marker == f"[truncated {2_000 - len(kept.encode())} bytes]"
