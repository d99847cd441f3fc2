"""A process that decides on approvals, each in its own way and time; it is killed like the others.

What is done about a call follows from the run's number and the tool, so that whoever comes after a
kill says the same word again.
"""

from __future__ import annotations

import json
import random
import re
import time
from ctypes import c_double, c_int
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from chat.models import Approval

WAYS = ("approve", "deny", "approve edited", "approve late", "deny, go on")
LONGEST_DELAY = 1.0


def way_of(number: int, tool: str) -> str:
    """What is done about the call of ``tool`` in the run with that number."""
    return WAYS[(number + (tool == "note_update")) % len(WAYS)]


def number_of(content: str) -> int:
    found = re.search(r"Item(\d+)", content)
    assert found is not None
    return int(found[1])


def edited(arguments: str) -> dict[str, Any]:
    """What a person makes of the model's arguments."""
    changed: dict[str, Any] = json.loads(arguments)
    for field, model, person in (("title", "Item", "Edited"), ("content", "bread", "butter")):
        if field in changed:
            changed[field] = changed[field].replace(model, person)
    return changed


def decide(database: str, owner_id: int, killed: c_double, at: c_int) -> None:
    """Decide on all that comes, until killed. ``killed`` is when a worker was killed last."""
    from django.contrib.auth import get_user_model
    from django.db import connections

    from chat.runs.approvals import approvals_pending
    from tests.chaos import moments

    connections["default"].settings_dict["NAME"] = database
    moments.deciding(moments.Deaths(at))
    owner = get_user_model().objects.get(pk=owner_id)
    while True:
        for approval in approvals_pending(owner=owner):
            if _is_due(approval, killed.value):
                _decide(approval)
        time.sleep(0.02)


def _is_due(approval: Approval, killed: float) -> bool:
    asked = approval.requested.timestamp()
    if way_of(number_of(approval.run.message.content), approval.call.name) == "approve late":
        return killed > asked
    return time.time() > asked + _delay(approval.id)


def _delay(approval_id: UUID) -> float:
    return random.Random(approval_id.int).uniform(0, LONGEST_DELAY)


def _decide(approval: Approval) -> None:
    from chat.runs import deciding

    way = way_of(number_of(approval.run.message.content), approval.call.name)
    deciding.approval_decide(
        owner=approval.owner,
        approval_id=approval.id,
        decision="denied" if way.startswith("deny") else "approved",
        reason="Not now." if way.startswith("deny") else "",
        arguments=edited(approval.call.arguments) if way == "approve edited" else None,
        go_on=way.endswith("go on"),
    )
