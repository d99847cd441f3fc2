import asyncio
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from chat import events
from chat.runs.gatherer import Gatherer

RUN = UUID(int=1)
MESSAGE = UUID(int=2)


def text(value, message_id=MESSAGE):
    return events.TextDelta(message_id=message_id, text=value)


def gatherer(published, seconds=60.0):
    return Gatherer(run_id=RUN, attempt=3, seconds=seconds, publish=published.append)


async def test_gatherer_publishes_the_first_delta_at_once():
    published: list = []
    gathering = gatherer(published)
    gathering.add(text("Hel"))
    gathering.add(text("lo"))

    assert [(item.attempt, item.seq, item.event.text) for item in published[0]] == [(3, 1, "Hel")]
    assert len(published) == 1
    gathering.flush()
    assert published[1][0].event == text("lo")


async def test_gatherer_merges_what_comes_within_the_window():
    published: list = []
    gathering = gatherer(published, seconds=0.01)
    for piece in ("a", "b", "c"):
        gathering.add(text(piece))
    async with asyncio.timeout(2):
        while len(published) < 2:
            await asyncio.sleep(0)

    assert [item.event.text for batch in published for item in batch] == ["a", "bc"]
    gathering.flush()


async def test_gatherer_keeps_order_before_an_event_of_another_kind():
    published: list = []
    gathering = gatherer(published)
    gathering.add(text("a"))
    gathering.add(text("b"))
    notice = events.Notice(code="x", text="y")
    gathering.emit(notice)

    flat = [item.event for batch in published for item in batch]
    assert flat == [text("a"), text("b"), notice]


KINDS = st.sampled_from([events.TextDelta, events.ThinkingDelta])
IDS = st.sampled_from([uuid4(), uuid4()])


@given(st.lists(st.tuples(KINDS, IDS, st.text(min_size=1), st.booleans())))
def test_gatherer_loses_and_reorders_nothing_however_it_is_flushed(steps):
    published: list = []

    async def play():
        gathering = gatherer(published)
        for kind, message_id, piece, flush in steps:
            gathering.add(kind(message_id=message_id, text=piece))
            if flush:
                gathering.flush()
        gathering.flush()

    asyncio.run(play())
    flat = [item for batch in published for item in batch]
    assert [item.seq for item in flat] == list(range(1, len(flat) + 1))

    def joined(pairs):
        out: list = []
        for key, piece in pairs:
            if out and out[-1][0] == key:
                out[-1] = (key, out[-1][1] + piece)
            else:
                out.append((key, piece))
        return out

    sent = joined(((type(i.event), i.event.message_id), i.event.text) for i in flat)
    assert sent == joined(((kind, message_id), piece) for kind, message_id, piece, _ in steps)
