"""Approvals as rows: asked for, resolved, closed, and as the values that pages and events show.

Each write happens inside the transaction of whoever calls, who has locked the run, and gives the
events that tell of it. When a person is asked is the loop's to say, what a decision may be
``deciding``'s, and what becomes of the run ``lifecycle``'s.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import ApiToken, User
from chat import events
from chat.loop.folding import FoldedApproval
from chat.models import (
    Approval,
    ApprovalDecision,
    Run,
    RunStatus,
    ToolCall,
    ToolCallStatus,
)
from chat.transcript.history import OPEN_STATUSES
from tools.approval import Approved
from tools.arguments import parse_arguments
from tools.definitions import Preview
from tools.exceptions import ToolError
from tools.invocation import Described
from web import feed
from web.models import OwnerEventKind

PREVIEW_CHARACTERS = 200_000

_DECIDED: dict[ApprovalDecision, Literal["approved", "denied", "expired"]] = {
    ApprovalDecision.APPROVED: "approved",
    ApprovalDecision.DENIED: "denied",
    ApprovalDecision.EXPIRED: "expired",
}


@dataclass(frozen=True, slots=True)
class Card:
    """One call as it is put to a person."""

    call_id: str
    described: Described


def approvals_ask(*, run: Run, cards: Sequence[Card]) -> list[events.ApprovalRequired]:
    """Put calls to the person, also ones that were approved when their target was another.

    Asking again is another approval: a word on the one before it, said twice, says nothing of it.
    """
    now = timezone.now()
    asked = []
    for number, card in enumerate(cards):
        call = ToolCall.objects.get(conversation_id=run.conversation_id, call_id=card.call_id)
        Approval.objects.filter(call=call).delete()
        approval = Approval.objects.create(
            call=call,
            owner_id=run.owner_id,
            run=run,
            **_columns(card.described),
            # Cards of one moment keep the order of their calls.
            requested=now + timedelta(microseconds=number),
            expires=now + timedelta(days=settings.NOTEWIRE_APPROVAL_DAYS),
        )
        ToolCall.objects.filter(id=call.id).update(status=ToolCallStatus.AWAITING_APPROVAL)
        _change_record(run, approval, OwnerEventKind.APPROVAL_OPENED)
        asked.append(required_event(approval, call))
    return asked


def approval_refresh(*, approval: Approval, described: Described) -> events.ApprovalRequired:
    """Show what the call would do now; what was shown before can no longer be approved."""
    for name, value in _columns(described).items():
        setattr(approval, name, value)
    return _shown_anew(approval)


def approval_void(*, approval: Approval, said: str) -> events.ApprovalRequired:
    """The call cannot be carried out now: nothing that could be approved has the empty digest."""
    approval.digest = ""
    text = f"This can no longer be done: {said}"
    approval.preview = {**approval.preview, "text": text, "diff": None}
    return _shown_anew(approval)


def _shown_anew(approval: Approval) -> events.ApprovalRequired:
    approval.save(update_fields=["digest", "version", "preview"])
    _change_record(approval.run, approval, OwnerEventKind.APPROVAL_OPENED)
    return required_event(approval, approval.call)


def approval_resolve(
    *,
    approval: Approval,
    decision: ApprovalDecision,
    owner: User | None = None,
    via: ApiToken | None = None,
    **columns: Any,
) -> events.ApprovalResolved | None:
    """One conditional update: None where somebody was first."""
    changed = Approval.objects.filter(id=approval.id, decision="").update(
        decision=decision, decided_by=owner, via=via, decided=timezone.now(), **columns
    )
    if not changed:
        return None
    approval.refresh_from_db()
    _change_record(approval.run, approval, OwnerEventKind.APPROVAL_CLOSED)
    ToolCall.objects.filter(id=approval.call_id, status=ToolCallStatus.AWAITING_APPROVAL).update(
        status=ToolCallStatus.PENDING
    )
    return events.ApprovalResolved(
        approval_id=approval.id,
        tool_call_id=approval.call.call_id,
        decision=_DECIDED[decision],
        arguments=_edited(approval),
        reason=approval.reason,
        by=owner.get_username() if owner else "",
    )


def approvals_close(
    *, run: Run, after: int = -1, reason: str = ""
) -> list[events.ApprovalResolved]:
    """What is still awaited runs out: all of a run's, or those of calls behind a position."""
    rows = _pending().filter(run=run, call__position__gt=after).select_related("call")
    resolved = (
        approval_resolve(approval=row, decision=ApprovalDecision.EXPIRED, reason=reason)
        for row in rows.order_by("call__position")
    )
    return [event for event in resolved if event is not None]


def approvals_pending(*, owner: User, run_id: UUID | None = None) -> QuerySet[Approval]:
    """What waits for the owner's word, the oldest first."""
    rows = _pending().filter(owner=owner, run__status=RunStatus.AWAITING_APPROVAL)
    if run_id is not None:
        rows = rows.filter(run_id=run_id)
    return _with_rows(rows).order_by("requested", "id")


def approvals_together(*, owner: User, message_id: UUID) -> list[Approval]:
    """All calls of one answer that a person was asked about, in their order, decided or not."""
    rows = Approval.objects.filter(owner=owner, call__message_id=message_id)
    return list(_with_rows(rows).order_by("call__position"))


def approval_get(*, owner: User, approval_id: UUID) -> Approval:
    """Raises ``Approval.DoesNotExist``."""
    return _with_rows(Approval.objects.all()).get(id=approval_id, owner=owner)


def approved_calls(*, run: Run) -> dict[str, Approved]:
    """The person's yes to calls that have no result yet, by call id."""
    rows = Approval.objects.filter(run=run, decision=ApprovalDecision.APPROVED)
    earlier: dict[tuple[UUID, int | None], list[str]] = {}
    approved = {}
    for row in rows.select_related("call").order_by("call__position"):
        call = row.call
        together = earlier.setdefault((call.message_id, row.decided_by_id), [])
        if call.status in OPEN_STATUSES:
            approved[call.call_id] = Approved(
                row.digest, row.version, shown=_shown(row), together=tuple(together)
            )
        together.append(call.call_id)
    return approved


def _shown(approval: Approval) -> Preview | None:
    """What the person saw of what they approved; nothing where they changed the arguments."""
    if approval.arguments is not None:
        return None
    return Preview(approval.preview.get("text", ""), approval.preview.get("diff"))


def is_awaited(*, run_id: UUID) -> bool:
    return _pending().filter(run_id=run_id).exists()


def is_late(*, run_id: UUID) -> bool:
    return _late().filter(run_id=run_id).exists()


def late_runs() -> list[UUID]:
    """Runs that wait for an approval that has run out."""
    return list(_late().values_list("run_id", flat=True).order_by().distinct()[:100])


def approval_folded(approval: Approval, call: ToolCall) -> FoldedApproval:
    """The same that the events of the approval fold to."""
    preview = approval.preview
    return FoldedApproval(
        id=approval.id,
        arguments=arguments_of(call),
        preview={"text": preview.get("text", ""), "diff": preview.get("diff")},
        effect=preview.get("effect", ""),
        because=preview.get("because", ""),
        scopes=tuple(preview.get("scopes", ())),
        expires_at=approval.expires,
        decision=approval.decision,
        edited=_edited(approval),
        reason=approval.reason,
        by=approval.decided_by.get_username() if approval.decided_by else "",
    )


def preview_shown(described: Described) -> dict[str, str | None]:
    """What a call would do, for a person: a diff that is too long to be read is named."""
    diff = described.preview.diff
    if diff is not None and len(diff) > PREVIEW_CHARACTERS:
        diff = f"{diff[:PREVIEW_CHARACTERS]}\n… {len(diff) - PREVIEW_CHARACTERS} more characters"
    return {"text": described.preview.text, "diff": diff}


def required_event(approval: Approval, call: ToolCall) -> events.ApprovalRequired:
    shown = approval_folded(approval, call)
    return events.ApprovalRequired(
        approval_id=approval.id,
        tool_call_id=call.call_id,
        tool=call.name,
        arguments=shown.arguments,
        preview=shown.preview,
        effect=shown.effect,
        because=shown.because,
        scopes=shown.scopes,
        expires_at=shown.expires_at,
    )


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The object that the call's text holds; what does not parse is asked of nobody."""
    try:
        return parse_arguments(call.arguments)
    except ToolError:
        return {}


def _change_record(run: Run, approval: Approval, kind: OwnerEventKind) -> None:
    change = feed.Change(kind, approval.id, parent_id=run.conversation_id)
    feed.owner_events_record(owner_id=run.owner_id, changes=[change])


def _pending() -> QuerySet[Approval]:
    return Approval.objects.filter(decision="")


def _late() -> QuerySet[Approval]:
    return _pending().filter(expires__lte=timezone.now())


def _with_rows(rows: QuerySet[Approval]) -> QuerySet[Approval]:
    return rows.select_related("call", "run", "run__conversation", "decided_by")


def _edited(approval: Approval) -> dict[str, Any] | None:
    if approval.arguments is None:
        return None
    edited: dict[str, Any] = json.loads(approval.arguments)
    return edited


def _columns(described: Described) -> dict[str, Any]:
    """What is decided on, and what is shown of it."""
    scopes = ["once", "conversation", "always"] if described.can_be_allowed else ["once"]
    return {
        "digest": described.digest,
        "version": described.preview.version,
        "preview": {
            **preview_shown(described),
            "effect": described.effect,
            "because": described.because,
            "scopes": scopes,
        },
    }
