"""Makes the cards of calls that a person is to decide on: each is described by its tool.

A call that cannot be described ends in an error result instead: it is neither asked for nor run.
Storing cards belongs to ``approvals``, within the pause of ``lifecycle``.
"""

from __future__ import annotations

from collections.abc import Sequence

from chat import events
from chat.runs.approvals import Card
from chat.runs.calling import Caller
from chat.types import ToolCall
from tools.invocation import Described


async def cards_made(
    calls: Sequence[ToolCall], *, caller: Caller
) -> tuple[list[Card], list[events.ToolResult]]:
    """The cards, and the results of the calls that there is none for."""
    cards: list[Card] = []
    failed: list[events.ToolResult] = []
    for call in calls:
        found = await caller.describe(call)
        if isinstance(found, Described):
            cards.append(Card(call.id, found))
        else:
            failed.append(
                events.ToolResult(
                    tool_call_id=call.id,
                    tool=call.name,
                    content=found.content,
                    is_error=True,
                    status="error",
                    duration_ms=found.duration_ms,
                )
            )
    return cards, failed
