"""Moments at which a process kills itself now and then: those of asking, deciding and running.

They last microseconds, so that a kill from outside hardly ever meets one.
"""

from __future__ import annotations

import functools
import inspect
import os
import random
import signal
from collections.abc import Callable
from ctypes import c_int
from types import ModuleType
from typing import Any

CHANCE = 0.06

MOMENTS = (
    "the call is stored, nobody is asked yet",
    "its card is made, nothing of it is stored",
    "the approval is written, not committed",
    "its events are written, not committed",
    "the approval is committed, not published",
    "the job that asked is about to end",
    "the decision is written, not committed",
    "the continuation is queued, not committed",
    "the decision is committed",
    "the continuation has begun",
    "the approved call is marked as running",
    "the approved call ran, its result is not stored",
    "a result is stored, not published",
)

Test = Callable[[Any, dict[str, Any]], bool]


class Deaths:
    """``at`` tells the parent which moment it was."""

    def __init__(self, at: c_int) -> None:
        self._at = at
        random.seed()

    def before(self, moment: str, module: ModuleType, name: str, when: Test | None = None) -> None:
        self._wrap(moment, module, name, when, is_before=True)

    def after(self, moment: str, module: ModuleType, name: str, when: Test | None = None) -> None:
        """``when`` is asked with what came out, and what was given by name."""
        self._wrap(moment, module, name, when, is_before=False)

    def _wrap(
        self, moment: str, module: ModuleType, name: str, when: Test | None, *, is_before: bool
    ) -> None:
        inner = getattr(module, name)
        number = MOMENTS.index(moment)

        def come(result: Any, given: dict[str, Any]) -> None:
            if (when is None or when(result, given)) and random.random() < CHANCE:
                self._at.value = number
                os.kill(os.getpid(), signal.SIGKILL)

        async def awaited(*args: Any, **given: Any) -> Any:
            if is_before:
                come(None, given)
            result = await inner(*args, **given)
            if not is_before:
                come(result, given)
            return result

        def called(*args: Any, **given: Any) -> Any:
            if is_before:
                come(None, given)
            result = inner(*args, **given)
            if not is_before:
                come(result, given)
            return result

        wrapper = awaited if inspect.iscoroutinefunction(inner) else called
        setattr(module, name, functools.wraps(inner)(wrapper))


def carrying(deaths: Deaths) -> None:
    """The moments of a worker."""
    from chat import events
    from chat.runs import approvals, asking, calling, event_log, jobs, lifecycle, records

    def is_approved(_result: Any, given: dict[str, Any]) -> bool:
        return given["approved"] is not None

    def asks(_result: Any, given: dict[str, Any]) -> bool:
        return any(isinstance(event, events.ApprovalRequired) for event in given["appended"])

    deaths.before(MOMENTS[0], asking, "cards_made")
    deaths.after(MOMENTS[1], asking, "cards_made")
    deaths.after(MOMENTS[2], approvals, "approvals_ask")
    deaths.after(MOMENTS[3], event_log, "events_append", asks)
    deaths.after(MOMENTS[4], lifecycle, "run_pause")
    deaths.after(MOMENTS[5], jobs, "execute")
    deaths.after(
        MOMENTS[9], lifecycle, "run_begin", lambda begun, _: bool(begun and begun.approved)
    )
    deaths.before(MOMENTS[10], calling, "invoke", is_approved)
    deaths.after(MOMENTS[11], calling, "invoke", is_approved)
    deaths.after(MOMENTS[12], records, "batch_record", lambda _, given: bool(given["results"]))


def deciding(deaths: Deaths) -> None:
    """The moments of whoever approves."""
    from chat.runs import approvals, lifecycle
    from chat.runs import deciding as decisions

    deaths.after(MOMENTS[6], approvals, "approval_resolve")
    deaths.after(MOMENTS[7], lifecycle, "run_requeue")
    deaths.after(MOMENTS[8], decisions, "approval_decide")
