"""What holds of every run that is over, whatever happened to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from chat.events import LoggedEvent
from chat.loop.calls import shown
from chat.loop.folding import fold
from chat.loop.repair import repair
from chat.models import Approval, Message, Run
from chat.models import ToolCall as CallRow
from chat.runs.approvals import approval_folded
from chat.transcript.history import branch_rows, history_messages
from chat.types import ToolCall
from tests.chat.loop.rules import assert_valid


def assert_sound(run: Run, log: Sequence[LoggedEvent]) -> None:
    """One ``done``, last; the fold of the log equals the rows; the history is valid."""
    run.refresh_from_db()
    assert [item.event.name for item in log].count("done") == 1
    assert log[-1].event.name == "done"
    folded = fold(item.event for item in log)
    messages = Message.objects.filter(run=run).order_by("created", "id")
    rows = {str(message.id): _told(message) for message in messages}
    told = msgspec.json.decode(msgspec.json.encode(folded.state()["messages"]))
    # An attempt that died before its first checkpoint left words of a message that has no row.
    assert [m for m in told if m["id"] in rows or m["text"] or m["calls"]] == list(rows.values())
    assert (run.status, run.stop_reason) == ("finished", folded.stop_reason)
    assert run.error_code == (folded.error.code if folded.error else "")
    tip = Run.objects.get(id=run.id).conversation.leaf_id
    branch = branch_rows(conversation_id=run.conversation_id, tip_id=tip)
    assert_valid(repair(history_messages(messages=branch)).messages)


def _told(row: Message) -> dict[str, Any]:
    usage = {
        "fresh_input": row.fresh_input_tokens,
        "cache_read": row.cache_read_tokens,
        "cache_write": row.cache_write_tokens,
        "output": row.output_tokens,
        "reasoning": None,
        "estimated": row.usage_is == "estimated",
    }
    calls = row.tool_calls.order_by("position")
    sent = shown(tuple(ToolCall(c.call_id, c.name, c.arguments) for c in calls)).calls
    return {
        "id": str(row.id),
        "text": row.content,
        "thinking": row.thinking,
        "finish_reason": row.finish_reason or None,
        "usage": usage if row.usage_is else None,
        "calls": [
            {
                "id": call.call_id,
                "name": call.name,
                "arguments": seen.arguments,
                "status": call.status,
                "result": call.result,
                "is_error": call.is_error,
                **call.extra,
                "approval": _approved(call),
            }
            for call, seen in zip(calls, sent, strict=True)
        ],
    }


def _approved(call: CallRow) -> Any:
    found = Approval.objects.filter(call=call).select_related("decided_by").first()
    if found is None:
        return None
    return msgspec.json.decode(msgspec.json.encode(approval_folded(found, call)))
