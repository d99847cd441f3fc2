"""The one path of every run: ask the model, run its calls, ask again, until there is an answer.

Owns the order of events and what happens to each call; what to do next is decided in ``planning``,
what a provider is sent in ``repair`` and ``window``. Storing, numbering, stopping and the events
``run_started`` and ``done`` belong to the executor.

``run_loop`` yields batches. The consumer commits one before it asks for the next; that makes the
generator the barrier between a row and its effect:

- deltas: one batch per upstream read;
- a complete message: ``MessageCompleted`` (iteration 0: the last call, which counts as none),
  ``UsageReported``, ``ToolUse`` where it asks for calls, notices, all in one batch;
- each call: ``ToolStarted`` alone *before* the tool runs, then ``ToolResult``. A call that is not
  run has a result only;
- ``ErrorOccurred`` where the run ends in an error;
- ``LoopEnded``, or ``LoopPaused`` where a person has to decide first: alone, exactly once, last.
  It is no event: it is the loop's return value.

Closing the generator, or cancelling the task that waits for it, closes the upstream at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, assert_never, cast
from uuid import UUID, uuid4

from chat import events
from chat.events import Event
from chat.exceptions import ProviderError
from chat.loop import notices, planning
from chat.loop.calls import CallIds, is_cut_off, mint_call_id, shown
from chat.loop.estimate import estimated_usage
from chat.loop.repair import repair
from chat.loop.window import fit, shorten
from chat.providers.base import Provider
from chat.types import (
    AssistantMessage,
    CallApproved,
    CallDenied,
    CallOutcome,
    Completion,
    Delta,
    Fault,
    HistoryMessage,
    ModelRequest,
    PendingCall,
    Progress,
    StopReason,
    SystemMessage,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from tools.definitions import ToolSpec


@dataclass(frozen=True, slots=True)
class Limits:
    """``iterations`` is clamped to 1..10; ``tokens`` of all a run's calls together, None for no
    limit; the byte counts are of UTF-8."""

    iterations: int = planning.MAX_ITERATIONS
    tokens: int | None = None
    history_bytes: int = 200 * 1024
    results_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class LoopEnded:
    """Why the loop ended and the run's last assistant message; ``fault`` exactly for ``error``."""

    reason: StopReason
    message_id: UUID | None
    iterations: int
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class LoopPaused:
    """A person decides on these calls; the loop goes on from the rows that then hold their word."""

    calls: tuple[ToolCall, ...]


Batch: TypeAlias = tuple[Event | LoopEnded | LoopPaused, ...]
Invoke: TypeAlias = Callable[[ToolCall], Awaitable[CallOutcome]]


class Gate(Protocol):
    """Between a call and its run: whether a person is asked, and whether their word still holds."""

    def asks(self, call: ToolCall) -> bool:
        """Whether a person is to decide before ``call`` runs."""

    async def recheck(self, call: ToolCall) -> CallOutcome | Literal["holds", "stale"]:
        """Of an approved call, with the approved arguments; an outcome where it cannot be run."""


class OpenGate:
    """Nobody is asked; what ``invoke`` refuses is refused."""

    def asks(self, call: ToolCall) -> bool:
        return planning.never(call)

    async def recheck(self, call: ToolCall) -> CallOutcome | Literal["holds", "stale"]:
        return "holds"


def _never(_name: str) -> bool:
    return False


def run_loop(
    *,
    provider: Provider,
    model: str,
    system: str,
    progress: Progress,
    invoke: Invoke,
    tools: tuple[ToolSpec, ...] = (),
    limits: Limits | None = None,
    repeatable: Callable[[str], bool] = _never,
    gate: Gate | None = None,
    used_ids: Collection[str] = (),
    mint: Callable[[], str] = mint_call_id,
    new_message_id: Callable[[], UUID] = uuid4,
) -> AsyncGenerator[Batch, None]:
    """Carry a run on from ``progress`` to its end.

    ``invoke`` runs one call and never raises; ``gate`` says about which a person is asked first.
    ``repeatable`` says of a tool's name whether running
    a call again after a crash is harmless. ``used_ids`` are call ids of the whole conversation:
    a call whose id is one of them gets a new one.
    """
    loop = _Loop(
        provider=provider,
        model=model,
        system=system,
        progress=progress,
        invoke=invoke,
        tools=tools,
        limits=limits or Limits(),
        repeatable=repeatable,
        gate=gate or OpenGate(),
        ids=CallIds({*used_ids, *_ids_in(progress.history)}, mint),
        new_message_id=new_message_id,
    )
    return loop.batches()


@dataclass(slots=True)
class _Loop:
    provider: Provider
    model: str
    system: str
    progress: Progress
    invoke: Invoke
    tools: tuple[ToolSpec, ...]
    limits: Limits
    repeatable: Callable[[str], bool]
    gate: Gate
    ids: CallIds
    new_message_id: Callable[[], UUID]
    fault: Fault | None = None
    nudged: bool = False
    told: frozenset[str] = frozenset()

    async def batches(self) -> AsyncGenerator[Batch, None]:
        limit = planning.iteration_limit(self.limits.iterations)
        while True:
            step = planning.next_step(
                self.progress,
                max_iterations=limit,
                max_tokens=self.limits.tokens,
                fault=self.fault,
                asks=self.gate.asks,
            )
            match step:
                case planning.CallModel(iteration=iteration):
                    work = self.ask(iteration, "auto")
                case planning.LastCall():
                    work = self.ask(0, "none")
                case planning.RunTool(pending=pending):
                    work = self.run_tool(pending)
                case planning.SkipCalls(calls=calls, because=because):
                    work = self.skip(calls, _NOT_RUN[because])
                case planning.Ask(calls=asked):
                    yield (LoopPaused(asked),)
                    return
                case planning.Finish(reason=reason):
                    yield (self.ended(reason),)
                    return
                case _:
                    assert_never(step)
            async with aclosing(work) as batches:
                async for batch in batches:
                    yield batch

    def ended(self, reason: StopReason) -> LoopEnded:
        return LoopEnded(reason, self.progress.message_id, self.progress.iterations, self.fault)

    async def ask(
        self, iteration: int, tool_choice: Literal["auto", "none"]
    ) -> AsyncGenerator[Batch, None]:
        """One model call. ``iteration`` 0 is the last call."""
        request, told = self.request(tool_choice)
        if told:
            yield told
        message_id = self.progress.open_message_id or self.new_message_id()
        completion: Completion | None = None
        try:
            # A provider's iterator is a generator: closing it closes the upstream connection.
            stream = cast(AsyncGenerator[tuple[Delta, ...], None], self.provider.stream(request))
            async with aclosing(stream) as reads:
                async for deltas in reads:
                    batch, completion = _as_events(deltas, message_id, completion)
                    if batch:
                        yield batch
        except ProviderError as error:
            self.fault = error.fault
            yield (_error(error.fault, self.provider.name, error.code, str(error)),)
            return
        yield self.completed(request, message_id, iteration, completion or _INCOMPLETE)

    def request(
        self, tool_choice: Literal["auto", "none"]
    ) -> tuple[ModelRequest, tuple[events.Notice, ...]]:
        """What the provider is sent, and notices of what had to be done to it, each told once."""
        repaired = repair([SystemMessage(self.system), *self.progress.history])
        window = fit(repaired.messages, limit=self.limits.history_bytes)
        found = notices.of_history(repaired, window)
        new = tuple(notice for notice in found if notice.code not in self.told)
        self.told |= {notice.code for notice in new}
        request = ModelRequest(self.model, window.messages, self.tools, tool_choice)
        return request, new

    def completed(
        self, request: ModelRequest, message_id: UUID, iteration: int, completion: Completion
    ) -> Batch:
        """Take the message into the transcript; the events that say so."""
        fault = self.fault = completion.fault
        calls = () if fault else self.ids.take(completion.calls)
        batch: list[Event] = []
        if not fault or completion.text or completion.thinking:
            batch.append(
                events.MessageCompleted(
                    message_id=message_id,
                    finish_reason=completion.finish_reason,
                    completion=completion,
                    calls=calls,
                    iteration=iteration,
                )
            )
            usage = completion.usage or estimated_usage(request, completion)
            batch.append(events.UsageReported(message_id=message_id, usage=usage))
            self.advance(message_id, iteration, completion, calls, usage)
        if calls:
            batch.append(shown(calls))
        elif not fault:
            batch.extend(self.after_words(iteration, completion))
        if fault:
            batch.append(_error(fault, self.provider.name))
        return tuple(batch)

    def advance(
        self,
        message_id: UUID,
        iteration: int,
        completion: Completion,
        calls: tuple[ToolCall, ...],
        usage: Usage,
    ) -> None:
        message = AssistantMessage(
            text=completion.text,
            thinking=completion.thinking,
            calls=calls,
            provider=self.provider.name,
            model=self.model,
            details=completion.details,
        )
        self.progress = replace(
            self.progress,
            history=(*self.progress.history, message),
            iterations=iteration or self.progress.iterations,
            tokens=self.progress.tokens + usage.total,
            pending=tuple(
                PendingCall(call, is_cut_off=is_cut_off(call, completion.finish_reason))
                for call in calls
            ),
            open_message_id=None,
            message_id=message_id,
            last_call_done=not iteration,
        )

    def after_words(self, iteration: int, completion: Completion) -> tuple[events.Notice, ...]:
        """Notices for a message without calls; it is the answer unless the model is nudged."""
        limit = planning.iteration_limit(self.limits.iterations)
        announced = completion.finish_reason == "tool_use"
        if announced and not self.nudged and 0 < iteration < limit:
            self.nudged = True
            self.continue_with(UserMessage(notices.NUDGE))
            return (notices.nudged(),)
        return notices.of_answer(completion, last_call=not iteration)

    def continue_with(self, message: HistoryMessage) -> None:
        self.progress = replace(self.progress, history=(*self.progress.history, message))

    async def skip(
        self, calls: tuple[PendingCall, ...], content: str
    ) -> AsyncGenerator[Batch, None]:
        for pending in calls:
            outcome = CallOutcome(content, status="skipped", is_error=True)
            yield (self.resulted(pending.call, outcome),)

    async def run_tool(self, pending: PendingCall) -> AsyncGenerator[Batch, None]:
        outcome = self.settled(pending)
        call, decision = pending.call, pending.decision
        if outcome is None and isinstance(decision, CallApproved):
            call = replace(call, arguments=decision.arguments)
            found = await self.gate.recheck(call)
            if found == "stale":
                self.ask_again(pending)
                return
            outcome = None if found == "holds" else found
        if outcome is None:
            yield (events.ToolStarted(tool_call_id=call.id),)
            outcome = await self.invoke(call)
        if isinstance(decision, CallApproved) and decision.edited:
            outcome = replace(outcome, content=f"{notices.edited(decision)}\n\n{outcome.content}")
        yield (self.resulted(call, outcome),)
        if isinstance(decision, CallDenied) and not decision.go_on:
            self.progress = replace(self.progress, denied=True)

    def settled(self, pending: PendingCall) -> CallOutcome | None:
        """The outcome of a call that is not to be run; None where it is."""
        if isinstance(pending.decision, CallDenied):
            return CallOutcome(notices.denied(pending.decision), status="denied", is_error=True)
        if pending.was_running and not self.repeatable(pending.call.name):
            return CallOutcome(notices.UNKNOWN, status="unknown", is_error=True)
        if pending.is_cut_off:
            return CallOutcome(notices.TRUNCATED, status="error", is_error=True)
        return None

    def ask_again(self, pending: PendingCall) -> None:
        stale = replace(pending, decision=None, is_stale=True)
        self.progress = replace(self.progress, pending=(stale, *self.progress.pending[1:]))

    def resulted(self, call: ToolCall, outcome: CallOutcome) -> events.ToolResult:
        """Take the result into the transcript, within what the iteration's results may have."""
        room = max(0, self.limits.results_bytes - planning.result_bytes(self.progress))
        content = shorten(outcome.content, room)
        self.continue_with(
            ToolMessage(call.id, call.name, content, outcome.is_error, outcome.from_outside)
        )
        self.progress = replace(self.progress, pending=self.progress.pending[1:])
        return events.ToolResult(
            tool_call_id=call.id,
            tool=call.name,
            content=content,
            is_error=outcome.is_error,
            status=outcome.status,
            duration_ms=outcome.duration_ms,
            summary=outcome.summary,
            touched=outcome.touched,
            from_outside=outcome.from_outside,
        )


_NOT_RUN = {"last_call": notices.SKIPPED, "denied": notices.AFTER_DENIAL}


def _ids_in(history: tuple[HistoryMessage, ...]) -> Iterator[str]:
    for message in history:
        if isinstance(message, AssistantMessage):
            yield from (call.id for call in message.calls)


_INCOMPLETE = Completion(
    finish_reason="error",
    fault=Fault("stream_incomplete", "The provider's stream ended before its answer did."),
)


def _as_events(
    deltas: tuple[Delta, ...], message_id: UUID, completion: Completion | None
) -> tuple[Batch, Completion | None]:
    batch: list[Event] = []
    for delta in deltas:
        match delta:
            case TextDelta(text=text):
                batch.append(events.TextDelta(message_id=message_id, text=text))
            case ThinkingDelta(text=text):
                batch.append(events.ThinkingDelta(message_id=message_id, text=text))
            case Completion():
                completion = delta
            case _:
                assert_never(delta)
    return tuple(batch), completion


def _error(
    fault: Fault, provider: str, code: str = ProviderError.code, message: str = ""
) -> events.ErrorOccurred:
    return events.ErrorOccurred(
        code=code,
        message=message or fault.message or "The provider failed without saying why.",
        provider=provider,
        status=fault.status,
        retryable=fault.retryable,
    )
