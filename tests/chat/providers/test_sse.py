"""The decoder against the standard's rules, in every cutting of the bytes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.providers.sse import EventDecoder, EventTooLargeError, ServerEvent
from tests.effort import growth


def decode(*reads):
    decoder = EventDecoder()
    events = [event for read in reads for event in decoder.feed(read)]
    return events + decoder.close()


def event(data, name=""):
    return ServerEvent(data, name)


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"data: a\n\n", [event(b"a")]),
        (b"data:a\n\ndata:  a\n\n", [event(b"a"), event(b" a")]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [event(b"a"), event(b"b"), event(b"c")]),
        (b"\xef\xbb\xbfdata: a\n\n", [event(b"a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b": OPENROUTER PROCESSING\n\n: ping\n\ndata: a\n\n", [event(b"a")]),
        (b"data: a\ndata: b\ndata:\n\n", [event(b"a\nb\n")]),
        (b"data\n\n", [event(b"")]),
        (b"event: error\ndata: a\n\ndata: b\n\n", [event(b"a", "error"), event(b"b")]),
        (b"event:error\ndata:a\n\n", [event(b"a", "error")]),
        (b"event: lost\n\ndata: a\n\n", [event(b"a")]),
        (b"retry: 5\nDATA: x\nfoo\n\n", []),
        (
            b"data: A\xe2\x80\xa8B\xc2\x85C\x0b\x0c\x1c\n\n",
            [event("A\u2028B\x85C\v\f\x1c".encode())],
        ),
        (b"data: a\n", [ServerEvent(b"a", cut=True)]),
        (b"data: a", [ServerEvent(b"a", cut=True)]),
        (b"event: x\nid: 1\n", []),
        (b"", []),
    ],
)
def test_decoder_gives_the_events_of_a_body(body, events):
    assert decode(body) == events
    assert decode(*(body[at : at + 1] for at in range(len(body)))) == events


def test_decoder_keeps_the_last_event_id():
    decoder = EventDecoder()
    decoder.feed(b"id: 7\ndata: a\n\nid: 8\0\n\n")
    assert decoder.last_event_id == "7"
    decoder.feed(b"id\ndata: b\n\n")
    assert decoder.last_event_id == ""


def test_decoder_takes_cr_and_lf_in_two_reads_as_one_line_end():
    assert decode(b"data: a\r", b"\ndata: b\r", b"", b"\n\r", b"\n") == [event(b"a\nb")]


LINES = st.sampled_from(
    [b"data: x", b"data:", b"data", b"event: e", b"id: 1", b": c", b"", b"", b"data: \xe4\xb8\xad"]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=20), st.randoms(use_true_random=False))
def test_decoder_gives_the_same_for_any_cutting(lines, rng):
    body = b"".join(line + end for line, end in lines)
    cuts = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randrange(6)))
    reads = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert decode(*reads) == decode(body)


def test_decoder_refuses_an_event_without_an_end():
    decoder = EventDecoder(max_event_bytes=1000)
    for _ in range(10):
        decoder.feed(b": " + b"x" * 500 + b"\n")
    with pytest.raises(EventTooLargeError):
        for _ in range(10):
            decoder.feed(b"x" * 500)


def test_decoder_counts_the_lines_of_one_event_together():
    decoder = EventDecoder(max_event_bytes=1000)
    with pytest.raises(EventTooLargeError):
        for _ in range(300):
            decoder.feed(b"data\n")


@pytest.mark.thorough
@pytest.mark.parametrize("line", [b"x" * 1017 + b"ab", b"data: y\n" * 128], ids=["one", "many"])
def test_decoder_is_linear_in_the_size_of_an_event(line):
    """2 MiB in 1 KiB reads take 5 ms; a decoder that looks back needs seconds."""

    def decode_event(reads):
        decoder = EventDecoder()
        decoder.feed(b"data: ")
        for _ in range(reads):
            decoder.feed(line)
        (whole,) = decoder.feed(b"\n\n")
        assert len(whole.data) > reads * 200

    assert growth(decode_event, 2048) < 4


def test_decoder_survives_noise():
    rng = random.Random(5)
    decode(*(rng.randbytes(50) for _ in range(200)))
