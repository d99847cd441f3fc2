"""What a run does next, as a type, computed from its transcript alone.

A fresh run, one that goes on after a tool call or an approval and one taken on after a crash are
the same path: pending calls are the last assistant message's calls minus their results. Owns the
decision; who carries it out is ``run_loop``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, TypeAlias

from chat.types import (
    AssistantMessage,
    CallDenied,
    Fault,
    PendingCall,
    Progress,
    StopReason,
    ToolCall,
    ToolMessage,
)

MAX_ITERATIONS = 10


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model, tools allowed; ``iteration`` counts from 1."""

    iteration: int


@dataclass(frozen=True, slots=True)
class LastCall:
    """The iterations are used up: ask once more, without tools, so that there is an answer."""


@dataclass(frozen=True, slots=True)
class RunTool:
    """Give the first open call its result; it may be that of a person's no."""

    pending: PendingCall


@dataclass(frozen=True, slots=True)
class SkipCalls:
    """Give every open call a result without running it.

    ``last_call``: the model made them where it may make none. ``denied``: a person denied one
    before them.
    """

    calls: tuple[PendingCall, ...]
    because: Literal["last_call", "denied"]


@dataclass(frozen=True, slots=True)
class Ask:
    """A person decides on these calls before anything goes on."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    reason: StopReason


NextStep: TypeAlias = CallModel | LastCall | RunTool | SkipCalls | Ask | Finish
Asks: TypeAlias = Callable[[ToolCall], bool]


def iteration_limit(wanted: int) -> int:
    """``wanted`` clamped to 1..10."""
    return max(1, min(MAX_ITERATIONS, wanted))


def never(_call: ToolCall) -> bool:
    """Nobody is asked about anything."""
    return False


def next_step(
    progress: Progress,
    *,
    max_iterations: int,
    max_tokens: int | None = None,
    fault: Fault | None = None,
    asks: Asks = never,
) -> NextStep:
    """The one place that decides. A fault ends a run; otherwise open calls come first.

    ``asks`` says whether the policy wants a person asked before a call. A run that used
    ``max_tokens`` asks no model any more, not even for a last word.

    An assistant message without calls is the answer, unless nothing was asked in this run yet: a
    run that continues an ended one starts behind that one's answer.
    """
    if fault is not None:
        return Finish("error")
    if progress.pending:
        return _next_call(progress, asks)
    if progress.last_call_done:
        return Finish("max_iterations")
    if progress.denied:
        return Finish("denied")
    if progress.iterations and isinstance(progress.history[-1], AssistantMessage):
        return Finish("end_turn")
    if max_tokens is not None and progress.tokens >= max_tokens:
        return Finish("budget")
    if progress.iterations >= max_iterations:
        return LastCall()
    return CallModel(progress.iterations + 1)


def _next_call(progress: Progress, asks: Asks) -> RunTool | SkipCalls | Ask:
    """Calls run in their order, up to the first that a person is asked about: then all such are."""
    if progress.last_call_done:
        return SkipCalls(progress.pending, "last_call")
    if progress.denied:
        return SkipCalls(progress.pending, "denied")
    first = progress.pending[0]
    if not _must_ask(first, asks):
        return RunTool(first)
    ahead = takewhile(lambda pending: not _ends_run(pending), progress.pending)
    return Ask(tuple(pending.call for pending in ahead if _must_ask(pending, asks)))


def _must_ask(pending: PendingCall, asks: Asks) -> bool:
    if pending.is_stale:
        return True
    settled = pending.decision is not None or pending.was_running or pending.is_cut_off
    return not settled and asks(pending.call)


def _ends_run(pending: PendingCall) -> bool:
    return isinstance(pending.decision, CallDenied) and not pending.decision.go_on


def result_bytes(progress: Progress) -> int:
    """UTF-8 bytes of the results that the current iteration has so far."""
    used = 0
    for message in reversed(progress.history):
        if not isinstance(message, ToolMessage):
            break
        used += len(message.content.encode())
    return used
