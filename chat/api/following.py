"""How a listener follows a run, a conversation or a person's feed: from the beginning, or on.

What the events are is the runtime's and ``web.feed``'s, which points of a run there are
``runs.resume``'s, how events are written ``wire``'s.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast
from uuid import UUID

import msgspec

from chat.events import Done, LoggedEvent, Snapshot
from chat.loop.folding import Folded
from chat.runs import resume as resuming
from chat.runs import runtime as runtime_module
from chat.runs.event_log import RunGoneError
from chat.runs.resume import Position
from chat.runs.runtime import Runtime
from chat.transcript import selectors
from chat.wire.feed import Entry, entry, snapshot
from tools.threads import unit_of_work
from web import feed

Batches = AsyncGenerator[tuple[LoggedEvent, ...] | None, None]

#: How long an event may be on its way from the process that told it into the log.
SETTLE_SECONDS = 1.0

_FEED_POINT = re.compile(r"[0-9]{1,18}")


async def follow(runtime: Runtime, run_id: UUID, resume: str = "") -> Batches:
    """Batches of a run's events strictly after ``resume``, until ``done``; None: keep-alive.

    A resume point that this run's log does not have, or an older attempt's, is answered by a
    ``snapshot`` of what there is, then by what comes. A run that is deleted meanwhile ends, for
    whoever followed it, as one that was stopped.
    """
    position: Position | None = None
    if resume:
        position = await _position(runtime, run_id, resume)
        if position is None:
            try:
                snapshot = await unit_of_work(resuming.snapshot_of, run_id=run_id)
            except RunGoneError:
                yield (_gone(run_id, None),)
                return
            position = (snapshot.attempt, snapshot.seq)
            if position > (0, 0):
                yield (snapshot,)
    last: LoggedEvent | None = None
    events = cast(Batches, runtime.events(run_id, position))
    async with aclosing(events):
        async for batch in events:
            yield batch
            last = batch[-1] if batch else last
    if last is None or not isinstance(last.event, Done):
        yield (_gone(run_id, last),)


def _gone(run_id: UUID, last: LoggedEvent | None) -> LoggedEvent:
    attempt, seq = (last.attempt, last.seq) if last else (0, 0)
    return LoggedEvent(run_id, attempt, seq + 1, Done(reason="stopped", run_id=run_id))


async def _position(runtime: Runtime, run_id: UUID, resume: str) -> Position | None:
    """The place of ``resume`` in the log; what another process has just told is waited for."""
    deadline = time.monotonic() + SETTLE_SECONDS
    with runtime.hub.subscribed(run_id) as news:
        await runtime.flusher.settled(run_id)
        while True:
            position = await unit_of_work(resuming.position_of, run_id=run_id, resume=resume)
            left = deadline - time.monotonic()
            if position is not None or left < 0:
                return position
            if not await unit_of_work(resuming.is_ahead, run_id=run_id, resume=resume):
                return await unit_of_work(resuming.position_of, run_id=run_id, resume=resume)
            await news.wait(left)


async def follow_conversation(runtime: Runtime, conversation_id: UUID, resume: str = "") -> Batches:
    """The events of all runs of a conversation, one run after another, then of those to come.

    A resume point that none of its runs has is answered by a ``snapshot`` of each run there is.
    Ends only where the conversation was deleted.
    """
    async with aclosing(_legs(runtime, conversation_id, resume)) as legs:
        async for leg in legs:
            if leg is None:
                yield None
                continue
            async with aclosing(follow(runtime, *leg)) as batches:
                async for batch in batches:
                    yield batch and tuple(map(_of_conversation, batch))


async def _legs(
    runtime: Runtime, conversation_id: UUID, resume: str
) -> AsyncGenerator[tuple[UUID, str] | None, None]:
    """Run after run, each with the point to go on from; None: a keep-alive is due."""
    with runtime.hub.subscribed(conversation_id) as news:
        run, point = await unit_of_work(
            resuming.conversation_point, conversation_id=conversation_id, resume=resume
        )
        last = None if run is None else run.id
        if run is not None:
            if not await unit_of_work(resuming.is_over, run=run, resume=point):
                yield run.id, point
            point = ""
        while True:
            if run_id := await unit_of_work(
                resuming.run_after, conversation_id=conversation_id, run_id=last
            ):
                yield run_id, point
                last = run_id
                continue
            point = ""
            if not await unit_of_work(
                selectors.conversation_exists, conversation_id=conversation_id
            ):
                return
            if not await news.wait(runtime_module.KEEP_ALIVE_SECONDS):
                yield None


def _of_conversation(logged: LoggedEvent) -> LoggedEvent:
    """A snapshot names what it covers by the ids of the stream that it is sent on."""
    if not isinstance(logged.event, Snapshot):
        return logged
    return msgspec.structs.replace(
        logged, event=msgspec.structs.replace(logged.event, covers=logged.full_id)
    )


async def follow_owner(
    runtime: Runtime, owner_id: int, resume: str = ""
) -> AsyncGenerator[tuple[Entry, ...] | None, None]:
    """What changes of a person's things, strictly after ``resume``, without end.

    Without a resume point, or with one that the feed does not have any more, it begins with a
    ``snapshot``, which says where the feed stands. None: a keep-alive is due.
    """
    with runtime.hub.subscribed(owner_id) as news:
        position = await unit_of_work(_feed_position, owner_id=owner_id, resume=resume)
        if position is None:
            first = await unit_of_work(_feed_snapshot, owner_id=owner_id)
            position = first.position
            yield (first,)
        while True:
            page = await unit_of_work(feed.owner_events_after, owner_id=owner_id, position=position)
            if page:
                entries = tuple(map(entry, page))
                position = entries[-1].position
                yield entries
            elif not await news.wait(runtime_module.KEEP_ALIVE_SECONDS):
                yield None


def _feed_position(*, owner_id: int, resume: str) -> int | None:
    if _FEED_POINT.fullmatch(resume) is None:
        return None
    position = int(resume)
    return position if feed.position_is_known(owner_id=owner_id, position=position) else None


def _feed_snapshot(*, owner_id: int) -> Entry:
    """The position is read first: what changes in between comes once more, and is not missed."""
    position = feed.position_last(owner_id=owner_id)
    return snapshot(
        position=position,
        active_runs=selectors.runs_active(owner_id=owner_id),
        approvals=selectors.approvals_waiting(owner_id=owner_id),
    )


async def drain(batches: AsyncIterator[tuple[LoggedEvent, ...] | None]) -> Folded:
    """All that a run does until it is over, or until a person has to decide."""
    folded = Folded()
    async for batch in batches:
        for logged in batch or ():
            folded.apply(logged.event)
        if folded.is_awaiting:
            break
    return folded
