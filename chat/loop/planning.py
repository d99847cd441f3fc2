"""What a run does next, as a type, computed from its transcript alone.

A fresh run, one that goes on after a tool call and one taken on after a crash are the same path:
pending calls are the last assistant message's calls minus their results. Owns the decision; who
carries it out is ``run_loop``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from chat.types import AssistantMessage, Fault, PendingCall, Progress, StopReason, ToolMessage

MAX_ITERATIONS = 10


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model, tools allowed; ``iteration`` counts from 1."""

    iteration: int


@dataclass(frozen=True, slots=True)
class LastCall:
    """The iterations are used up: ask once more, without tools, so that there is an answer."""


@dataclass(frozen=True, slots=True)
class RunTools:
    """Give every one of these calls its result, in this order.

    ``forbidden``: the model made them in its last call, where it may make none; they are not run.
    """

    calls: tuple[PendingCall, ...]
    forbidden: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    reason: StopReason


NextStep: TypeAlias = CallModel | LastCall | RunTools | Finish


def iteration_limit(wanted: int) -> int:
    """``wanted`` clamped to 1..10."""
    return max(1, min(MAX_ITERATIONS, wanted))


def next_step(progress: Progress, *, max_iterations: int, fault: Fault | None = None) -> NextStep:
    """The one place that decides. A fault ends a run; otherwise open calls come first.

    An assistant message without calls is the answer, unless nothing was asked in this run yet: a
    run that continues an ended one starts behind that one's answer.
    """
    if fault is not None:
        return Finish("error")
    if progress.pending:
        return RunTools(progress.pending, forbidden=progress.last_call_done)
    if progress.last_call_done:
        return Finish("max_iterations")
    if progress.iterations and isinstance(progress.history[-1], AssistantMessage):
        return Finish("end_turn")
    if progress.iterations >= max_iterations:
        return LastCall()
    return CallModel(progress.iterations + 1)


def result_bytes(progress: Progress) -> int:
    """UTF-8 bytes of the results that the current iteration has so far."""
    used = 0
    for message in reversed(progress.history):
        if not isinstance(message, ToolMessage):
            break
        used += len(message.content.encode())
    return used
