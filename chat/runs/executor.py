"""Carries one run forward: feeds the loop, numbers and publishes its events, commits its rows.

Text is published first and stored by grouped writes; everything else is committed first, in one
transaction a batch, before the loop goes on. Owns gathering of deltas, checkpoints of partial text,
how a run pauses where a person is asked, and how it ends when it is stopped, handed back, late or
broken. What a batch means is the ``loop``'s, what is written is ``records``' and ``lifecycle``'s.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError
from procrastinate.job_context import AbortReason

from chat import events
from chat.events import Event
from chat.exceptions import ChatError, FencedOut, HandBack, ProviderError
from chat.loop.run_loop import Limits, LoopEnded, LoopPaused, run_loop
from chat.providers.base import Provider
from chat.runs import asking, calling, lifecycle, records
from chat.runs.draft import Draft
from chat.runs.gatherer import Gatherer
from chat.runs.records import Fence, Record
from chat.types import StopReason, ToolCall
from tools.threads import unit_of_work

if TYPE_CHECKING:
    from chat.runs.runtime import Runtime

logger = logging.getLogger(__name__)

RUN_SECONDS = 15 * 60.0
CHECKPOINT_SECONDS = 2.0

#: A run that meets the same trouble with the database again and again ends in an error.
MOST_ATTEMPTS = 10

AbortReasonGetter = Callable[[], AbortReason | None]


async def execute(*, run_id: UUID, runtime: Runtime, abort_reason: AbortReasonGetter) -> None:
    """Carry a run to its end. Raises ``HandBack`` where the process or the database goes before.

    What was not stored by then is done anew by the next attempt.
    """
    try:
        begun = await _begun(run_id, abort_reason)
        if begun is None:
            return
        await _Executor(begun, runtime).run(abort_reason)
    except FencedOut:
        logger.warning("Run %s was taken over", run_id)
    except (OperationalError, InterfaceError) as error:
        logger.warning("Run %s is handed back, as the database is away: %s", run_id, error)
        raise HandBack from error


async def _begun(run_id: UUID, abort_reason: AbortReasonGetter) -> lifecycle.Begun | None:
    """None where there is nothing to carry, also where the stop came faster than the beginning."""
    try:
        return await unit_of_work(lifecycle.run_begin, run_id=run_id)
    except asyncio.CancelledError:
        if abort_reason() == AbortReason.SHUTDOWN:
            raise HandBack from None
    await unit_of_work(lifecycle.run_close, run_id=run_id, reason="stopped")
    return None


class _Executor:
    def __init__(self, begun: lifecycle.Begun, runtime: Runtime) -> None:
        self.begun = begun
        self.runtime = runtime
        self.fence = Fence(begun.run_id, begun.attempt, runtime.origin)
        self.draft = Draft(parent_id=begun.tip_id, message_id=begun.progress.open_message_id)
        self.gatherer = Gatherer(
            run_id=begun.run_id,
            attempt=begun.attempt,
            seconds=settings.NOTEWIRE_GATHER_MS / 1000,
            publish=lambda logged: runtime.publish(logged, stored=False),
        )
        self.error: events.ErrorOccurred | None = None
        self.checkpointed = time.monotonic()

    async def run(self, abort_reason: AbortReasonGetter) -> None:
        if self.begun.stop_requested:
            await self.close("stopped")
            return
        reason: StopReason | None = "error"
        try:
            async with asyncio.timeout(RUN_SECONDS):
                reason = await self.carry()
        except asyncio.CancelledError:
            if abort_reason() == AbortReason.SHUTDOWN:
                await self.hand_back()
                raise HandBack from None
            reason = "stopped"
        except TimeoutError:
            reason = "deadline"
        except FencedOut:
            raise
        except ChatError as error:
            self.error = _told(error)
        # An outermost edge: whatever the run meets, it is closed, or its conversation stays busy.
        except Exception as error:
            is_away = isinstance(error, OperationalError | InterfaceError)
            if is_away and self.begun.attempt < MOST_ATTEMPTS:
                raise
            logger.exception("Run %s failed", self.begun.run_id)
            self.error = INTERNAL
        if reason is not None:
            await self.close(reason)

    async def carry(self) -> StopReason | None:
        """Feed the loop until it ends; the reason why, None where it waits for a person."""
        chosen = await self.runtime.catalogue.resolve(self.begun.model or None)
        self.draft.answerer(provider=chosen.provider.name, model=chosen.model)
        await unit_of_work(
            lifecycle.run_name,
            fence=self.fence,
            provider=chosen.provider.name,
            model=chosen.model,
        )
        self.gatherer.emit(
            events.RunStarted(
                run_id=self.begun.run_id,
                conversation_id=self.begun.conversation_id,
                message_id=self.begun.message_id,
                model=chosen.model,
                provider=chosen.provider.name,
                interrupted=self.begun.interrupted,
            )
        )
        return await self.loop(chosen.provider, chosen.model)

    async def loop(self, provider: Provider, model: str) -> StopReason | None:
        caller = calling.Caller(begun=self.begun)
        batches = run_loop(
            provider=provider,
            model=model,
            system=self.begun.system,
            progress=self.begun.progress,
            invoke=caller.invoke,
            tools=caller.definitions(),
            limits=Limits(
                tokens=settings.NOTEWIRE_RUN_TOKENS,
                history_bytes=settings.NOTEWIRE_HISTORY_BYTES,
            ),
            repeatable=calling.is_repeatable,
            gate=caller,
            used_ids=self.begun.used_ids,
        )
        async with aclosing(batches):
            async for batch in batches:
                match batch:
                    case (LoopEnded(reason=reason),):
                        return reason
                    case (LoopPaused(calls=asked),):
                        await self.pause(asked, caller)
                        return None
                told = (item for item in batch if not isinstance(item, LoopEnded | LoopPaused))
                await self.take(tuple(told))
        raise RuntimeError("The loop ended without saying why.")

    async def take(self, batch: tuple[Event, ...]) -> None:
        """Publish text; commit everything else before it is published.

        A batch never holds both: text comes in one batch per upstream read.
        """
        batch = tuple(self.held_back(batch))
        if not batch:
            return
        text = [e for e in batch if isinstance(e, events.TextDelta | events.ThinkingDelta)]
        if len(text) == len(batch):
            await self.take_text(text)
        else:
            await self.take_boundary(batch)

    async def take_text(self, text: list[events.TextDelta | events.ThinkingDelta]) -> None:
        for event in text:
            self.draft.add(event)
            self.gatherer.add(event)
        if time.monotonic() - self.checkpointed > CHECKPOINT_SECONDS:
            await self.checkpoint()

    async def take_boundary(self, batch: tuple[Event, ...]) -> None:
        self.gatherer.flush()
        logged = self.gatherer.number([_public(event) for event in batch])
        async with self.runtime.flusher.detached(self.begun.run_id) as unsent:
            await unit_of_work(
                records.batch_record,
                fence=self.fence,
                messages=self.messages(batch),
                started=[e.tool_call_id for e in batch if isinstance(e, events.ToolStarted)],
                results=[e for e in batch if isinstance(e, events.ToolResult)],
                logged=[*unsent, *logged],
            )
        self.runtime.publish(logged, stored=True)

    async def pause(self, asked: Sequence[ToolCall], caller: calling.Caller) -> None:
        cards, failed = await asking.cards_made(asked, caller=caller)
        self.gatherer.flush()
        async with self.runtime.flusher.detached(self.begun.run_id) as unsent:
            logged = await unit_of_work(
                lifecycle.run_pause, fence=self.fence, cards=cards, failed=failed, unsent=unsent
            )
        self.runtime.publish(logged, stored=True)

    def held_back(self, batch: tuple[Event, ...]) -> list[Event]:
        """The error is written by the transaction that ends the run, just before ``done``."""
        rest: list[Event] = []
        for event in batch:
            if isinstance(event, events.ErrorOccurred):
                self.error = event
            else:
                rest.append(event)
        return rest

    def messages(self, batch: tuple[Event, ...]) -> list[Record]:
        usages = {e.message_id: e for e in batch if isinstance(e, events.UsageReported)}
        return [
            self.draft.complete(event, usages.get(event.message_id))
            for event in batch
            if isinstance(event, events.MessageCompleted)
        ]

    async def checkpoint(self) -> None:
        self.checkpointed = time.monotonic()
        record = self.draft.record()
        if record is not None:
            await unit_of_work(records.draft_save, fence=self.fence, record=record)

    async def hand_back(self) -> None:
        """Keep what there is; the next attempt writes the unfinished message anew."""
        self.gatherer.flush()
        await self.checkpoint()
        await self.runtime.flusher.settled(self.begun.run_id)

    async def close(self, reason: StopReason) -> None:
        self.gatherer.flush()
        async with self.runtime.flusher.detached(self.begun.run_id) as unsent:
            logged = await unit_of_work(
                lifecycle.run_close,
                run_id=self.begun.run_id,
                attempt=self.begun.attempt,
                reason=reason,
                error=self.error if reason == "error" else None,
                draft=self.draft.record(),
                unsent=unsent,
                origin=self.runtime.origin,
            )
        self.runtime.publish(logged, stored=True)


def _public(event: Event) -> Event:
    """Without what only the row needs: live and replayed events are equal."""
    if isinstance(event, events.MessageCompleted):
        return events.MessageCompleted(
            message_id=event.message_id, finish_reason=event.finish_reason
        )
    return event


def _told(error: ChatError) -> events.ErrorOccurred:
    if isinstance(error, ProviderError):
        return events.ErrorOccurred(
            code=error.code,
            message=str(error),
            provider=error.provider,
            status=error.fault.status,
            retryable=error.fault.retryable,
        )
    return events.ErrorOccurred(code=error.code, message=str(error))


INTERNAL = events.ErrorOccurred(
    code="internal",
    message="Something went wrong on the server. Your message is kept; try again.",
    retryable=True,
)
