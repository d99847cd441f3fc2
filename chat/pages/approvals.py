"""The pages of decisions: the inbox, and the word that a card sends, with or without a script."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from chat.exceptions import ApprovalClosedError, ApprovalInvalidError, ApprovalStaleError
from chat.models import Approval
from chat.pages.requests import PageRequest
from chat.runs import approvals
from chat.runs.deciding import Decision, approval_decide
from chat.wire.cards import ShownApproval, approval_shown
from web.errors import ApiError, error_response, wants_json
from web.pages import private_page

LISTED = 100
REASON_CHARACTERS = 2_000

#: What the buttons of a card say: the decision, and how far it reaches.
BUTTONS: dict[str, tuple[Decision, str]] = {
    "approve": ("approved", "once"),
    "approve-conversation": ("approved", "conversation"),
    "approve-always": ("approved", "always"),
    "deny": ("denied", "once"),
}


@private_page
@require_safe
def inbox_page(request: PageRequest) -> HttpResponse:
    """What waits for the person's word in all conversations, the oldest first."""
    rows = approvals.approvals_pending(owner=request.user)[:LISTED]
    waiting = [(row.run.conversation, card_of(row)) for row in rows]
    return render(request, "chat/approvals.html", {"waiting": waiting})


@private_page
@require_POST
def approval_view(request: PageRequest, approval_id: UUID) -> HttpResponse:
    """A word; whatever comes of it, the answer shows the card as it is then."""
    button = BUTTONS.get(request.POST.get("decision", ""))
    reason = request.POST.get("reason", "").replace("\r\n", "\n").strip()
    if button is None or "\0" in reason or len(reason) > REASON_CHARACTERS:
        return _answered(request, approval_id, ApiError("invalid", "This is no decision.", 400))
    decision, scope = button
    error = None
    try:
        approval_decide(
            owner=request.user,
            approval_id=approval_id,
            decision=decision,
            scope=scope,
            reason=reason if decision == "denied" else "",
            go_on=decision == "denied" and "continue" in request.POST,
        )
    except Approval.DoesNotExist:
        raise Http404 from None
    except ApprovalInvalidError as refused:
        error = ApiError(refused.code, str(refused), 400)
    except (ApprovalClosedError, ApprovalStaleError) as refused:
        error = ApiError(refused.code, str(refused), 409)
    return _answered(request, approval_id, error)


def card_of(approval: Approval) -> ShownApproval:
    return approval_shown(
        approvals.approval_folded(approval, approval.call), tool=approval.call.name
    )


def _answered(request: PageRequest, approval_id: UUID, error: ApiError | None) -> HttpResponse:
    try:
        approval = approvals.approval_get(owner=request.user, approval_id=approval_id)
    except Approval.DoesNotExist:
        raise Http404 from None
    if not wants_json(request):
        if error is not None:
            messages.error(request, error.message)
        if "inbox" in request.POST:
            return redirect("chat:approvals")
        return redirect("chat:conversation", approval.run.conversation_id)
    html = render_to_string("chat/approval.html", {"approval": card_of(approval)})
    if error is None:
        return JsonResponse({"html": html})
    error.extra["html"] = html
    return error_response(request, error)
