"""Between the loop and the tool framework: on whose behalf a run's calls are made.

Owns the context a tool runs in and the policy of a run; dispatch and its safety are ``tools``'.
"""

from __future__ import annotations

import math

from chat.runs.lifecycle import Begun
from chat.types import CallOutcome, ToolCall
from tools.definitions import ToolContext, ToolSpec
from tools.invocation import invoke
from tools.policy import operator_policy
from tools.registry import registry


def is_repeatable(name: str) -> bool:
    """Whether running a call again after a crash does no harm."""
    tool = registry.get(name)
    return tool is not None and tool.repeatable


class Caller:
    def __init__(self, *, begun: Begun) -> None:
        self._begun = begun
        self._policy = operator_policy()

    def definitions(self) -> tuple[ToolSpec, ...]:
        """The tools that the model is offered."""
        return registry.definitions(self._policy)

    async def invoke(self, call: ToolCall) -> CallOutcome:
        outcome = await invoke(
            name=call.name,
            arguments=call.arguments,
            context=ToolContext(
                user_id=self._begun.owner_id,
                # Each tool has a deadline of its own; the run's is the executor's.
                deadline=math.inf,
                conversation_id=self._begun.conversation_id,
                message_id=self._begun.message_id,
                run_id=self._begun.run_id,
                call_id=call.id,
            ),
            policy=self._policy,
        )
        return CallOutcome(
            content=outcome.content,
            status=outcome.status,
            is_error=outcome.is_error,
            duration_ms=outcome.duration_ms,
            summary=outcome.summary,
            touched=outcome.touched,
        )
