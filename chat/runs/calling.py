"""Between the loop and the tool framework: on whose behalf a run's calls are made.

Owns the context a tool runs in, the policy of a run (with what its window brings in from outside)
and what the person said about its calls; dispatch and its safety are ``tools``'.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from chat.runs.lifecycle import Begun
from chat.types import CallOutcome, HistoryMessage, ToolCall, ToolMessage
from tools.approval import Approved, follows
from tools.definitions import Outcome, ToolContext, ToolSpec
from tools.invocation import Described, describe, invoke, must_ask
from tools.registry import registry
from tools.threads import tool_thread

PREVIEW_SECONDS = 10.0


def is_repeatable(name: str) -> bool:
    """Whether running a call again after a crash does no harm."""
    tool = registry.get(name)
    return tool is not None and tool.repeatable


def is_from_outside(name: str) -> bool:
    """Whether what a tool answers was written elsewhere; of one that is gone nobody knows."""
    tool = registry.get(name)
    return tool is None or tool.effect == "external"


def is_tainted(history: Iterable[HistoryMessage]) -> bool:
    """Whether what the model is shown holds text from outside."""
    return any(
        isinstance(message, ToolMessage)
        and not message.is_error
        and (message.from_outside or is_from_outside(message.name))
        for message in history
    )


class Caller:
    """The loop's ``invoke`` and its ``Gate``."""

    def __init__(self, *, begun: Begun) -> None:
        self._begun = begun
        self._approved = dict(begun.approved)
        self._policy = replace(begun.policy, tainted=is_tainted(begun.progress.history))

    def definitions(self) -> tuple[ToolSpec, ...]:
        """The tools that the model is offered."""
        return registry.definitions(self._policy)

    def asks(self, call: ToolCall) -> bool:
        return self._begun.can_ask and must_ask(
            name=call.name, arguments=call.arguments, policy=self._policy
        )

    async def recheck(self, call: ToolCall) -> CallOutcome | Literal["holds", "stale"]:
        found = await self.describe(call)
        if isinstance(found, Outcome):
            return _told(found)
        approved = self._approved.get(call.id)
        if approved is None:
            return "stale"
        if approved.digest == found.digest:
            return "holds"
        if not follows(approved, tool=call.name, arguments=found.arguments, now=found.preview):
            return "stale"
        # From here on it is bound to what is there now.
        self._approved[call.id] = Approved(found.digest, found.preview.version)
        return "holds"

    async def describe(self, call: ToolCall) -> Described | Outcome:
        """What a person is shown of a call, or why it cannot be put to them."""
        try:
            async with asyncio.timeout(PREVIEW_SECONDS):
                return await tool_thread(
                    describe,
                    name=call.name,
                    arguments=call.arguments,
                    context=self._context(call, deadline=time.monotonic() + PREVIEW_SECONDS),
                    policy=self._policy,
                )
        except TimeoutError:
            text = f"{call.name} was not run: what it would do could not be shown in time."
            return Outcome(content=text, status="error", is_error=True)

    async def invoke(self, call: ToolCall) -> CallOutcome:
        outcome = await invoke(
            name=call.name,
            arguments=call.arguments,
            # Each tool has a deadline of its own; the run's is the executor's.
            context=self._context(call, deadline=math.inf),
            policy=self._policy,
            approved=self._approved.get(call.id),
        )
        if outcome.from_outside:
            self._policy = replace(self._policy, tainted=True)
        return _told(outcome)

    def _context(self, call: ToolCall, *, deadline: float) -> ToolContext:
        approved = self._approved.get(call.id)
        return ToolContext(
            user_id=self._begun.owner_id,
            deadline=deadline,
            conversation_id=self._begun.conversation_id,
            message_id=self._begun.message_id,
            run_id=self._begun.run_id,
            call_id=call.id,
            together=approved.together if approved else (),
            tainted=self._policy.tainted,
        )


def _told(outcome: Outcome) -> CallOutcome:
    return CallOutcome(
        content=outcome.content,
        status=outcome.status,
        is_error=outcome.is_error,
        duration_ms=outcome.duration_ms,
        summary=outcome.summary,
        touched=outcome.touched,
        from_outside=outcome.from_outside,
    )
