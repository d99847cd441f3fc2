"""The pages of decisions: the inbox, and the words that a card sends, with or without a script.

Whatever comes of a word, the answer shows the card as it is then. What a person changed in the
arguments is read back here, shown for what it would do, and approved only after that; whether it
can run is for ``runs.deciding`` to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from chat.exceptions import ApprovalClosedError, ApprovalInvalidError, ApprovalStaleError
from chat.models import Approval, Conversation
from chat.pages.requests import PageRequest
from chat.pages.transcript import answer_shown
from chat.runs import approvals
from chat.runs.deciding import (
    REFUSALS,
    Decision,
    Refused,
    approval_decide,
    approval_preview,
    approvals_decide,
)
from chat.wire.cards import (
    Change,
    Draft,
    ShownApproval,
    ShownCard,
    approval_shown,
    argument_fields,
    card_shown,
    change_shown,
    seal_of,
)
from web.errors import ApiError, error_response, wants_json
from web.pages import private_page

LISTED = 100
REASON_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class _Button:
    """What a button of a card says: the decision, how far it reaches, whether the model goes on."""

    decision: Decision
    scope: str = "once"
    go_on: bool = False


BUTTONS = {
    "approve": _Button("approved"),
    "approve-conversation": _Button("approved", "conversation"),
    "approve-always": _Button("approved", "always"),
    "deny": _Button("denied"),
    "deny-on": _Button("denied", go_on=True),
}
TOGETHER = {name: button for name, button in BUTTONS.items() if button.scope == "once"}
NONE = "This is no decision."
UNSEEN = "This is what it would do with your change. Look at it, then approve."


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person was asked about in one answer: what waits, and what they decided already."""

    message_id: UUID
    conversation: Conversation
    decided: tuple[ShownApproval, ...]
    card: ShownCard | None


@private_page
@require_safe
def inbox_page(request: PageRequest) -> HttpResponse:
    """What waits for the person's word in all conversations, the oldest first."""
    return render(request, "chat/approvals.html", {"waiting": _inbox(request, {})})


@private_page
@require_POST
def approval_view(request: PageRequest, approval_id: UUID) -> HttpResponse:
    """A word on one call."""
    approval = _found(request, approval_id)
    asked = approvals.approvals_together(owner=request.user, message_id=approval.call.message_id)
    button = BUTTONS.get(request.POST.get("decision", ""))
    reason = _text(request, f"reason-{approval_id}")
    if button is None or not _is_reason(reason):
        return _answered(request, asked, ApiError("invalid", NONE, 400))
    try:
        edited = _edited(request, approval) if button.decision == "approved" else None
        approval_decide(
            owner=request.user,
            approval_id=approval_id,
            decision=button.decision,
            scope=button.scope,
            reason=reason if button.decision == "denied" else "",
            arguments=edited,
            go_on=button.go_on,
            seen=_seen(request, approval, edited),
        )
    except Approval.DoesNotExist:
        raise Http404 from None
    except REFUSALS as error:
        return _refused(request, asked, [Refused(approval_id, error)])
    return _answered(request, asked)


@private_page
@require_POST
def preview_view(request: PageRequest, approval_id: UUID) -> HttpResponse:
    """What a call would do with the arguments as the person changed them; decides nothing."""
    approval = _found(request, approval_id)
    asked = approvals.approvals_together(owner=request.user, message_id=approval.call.message_id)
    try:
        draft = _draft(request, approval)
    except ApprovalClosedError as error:
        return _refused(request, asked, [Refused(approval_id, error)])
    if not wants_json(request):
        return _answered(request, asked, drafts=_drafts(request, asked))
    [shown] = _shown([approval], {approval_id: draft})
    html = render_to_string("chat/change.html", {"approval": shown, "alone": True})
    return JsonResponse({"html": html, "changed": shown.is_edited})


@private_page
@require_POST
def together_view(request: PageRequest, message_id: UUID) -> HttpResponse:
    """One word on all calls of an answer that the card showed and that still wait."""
    asked = approvals.approvals_together(owner=request.user, message_id=message_id)
    if not asked:
        raise Http404
    button = TOGETHER.get(request.POST.get("decision", ""))
    reason = _text(request, "reason")
    if button is None or not _is_reason(reason):
        return _answered(request, asked, ApiError("invalid", NONE, 400))
    shown = set(request.POST.getlist("asked"))
    waiting = [row for row in asked if not row.decision and str(row.id) in shown]
    edited: dict[UUID, Mapping[str, Any]] = {}
    refused: list[Refused] = []
    if button.decision == "approved":
        for row in waiting:
            try:
                changed = _edited(request, row)
            except ApprovalInvalidError as error:
                refused.append(Refused(row.id, error))
            else:
                edited |= {} if changed is None else {row.id: changed}
    unclear = {each.approval_id for each in refused}
    try:
        refused += approvals_decide(
            owner=request.user,
            approval_ids=[row.id for row in waiting if row.id not in unclear],
            decision=button.decision,
            reason=reason if button.decision == "denied" else "",
            arguments=edited,
            go_on=button.go_on,
            seen={row.id: _seen(request, row, edited.get(row.id)) for row in waiting},
        )
    except Approval.DoesNotExist:
        raise Http404 from None
    return _refused(request, asked, refused) if refused else _answered(request, asked)


def _found(request: PageRequest, approval_id: UUID) -> Approval:
    try:
        return approvals.approval_get(owner=request.user, approval_id=approval_id)
    except Approval.DoesNotExist:
        raise Http404 from None


def _text(request: PageRequest, name: str) -> str:
    return request.POST.get(name, "").replace("\r\n", "\n").strip()


def _is_reason(text: str) -> bool:
    return "\0" not in text and len(text) <= REASON_CHARACTERS


def _seen(request: PageRequest, approval: Approval, edited: Mapping[str, Any] | None) -> str:
    """The digest of what the card showed, which may have been shown anew elsewhere since.

    Who changed the arguments has seen what the card showed of just that, or nothing.
    """
    if edited is not None:
        return request.POST.get(f"previewed-{approval.id}", "another")
    seal = seal_of(approvals.approval_folded(approval, approval.call))
    is_shown = request.POST.get(f"seen-{approval.id}", seal) == seal
    return approval.digest if is_shown else "another"


def _edited(request: PageRequest, approval: Approval) -> dict[str, Any] | None:
    """The arguments as the person changed them; None where they changed nothing."""
    arguments = approvals.arguments_of(approval.call)
    edited = dict(arguments)
    wrong: dict[str, list[str]] = {}
    for field in argument_fields(approval.call.name, arguments):
        sent = request.POST.get(f"argument-{approval.id}-{field.name}")
        # A form sends every line break as two characters.
        if sent is None or sent.replace("\r\n", "\n") == field.value.replace("\r\n", "\n"):
            continue
        text = sent.replace("\r\n", "\n")
        try:
            edited[field.name] = text if field.is_text else json.loads(text)
        except (ValueError, RecursionError):
            wrong[f"arguments.{field.name}"] = ["This is not JSON: put quotes around a text."]
    if wrong:
        raise ApprovalInvalidError("What you changed cannot be read.", fields=wrong)
    return edited if edited != arguments else None


def _refused(
    request: PageRequest, asked: Sequence[Approval], refused: Sequence[Refused]
) -> HttpResponse:
    """Say what could not be taken. What the person wrote stays on the card."""
    stale = (each.error for each in refused if isinstance(each.error, ApprovalStaleError))
    first = next(stale, refused[0].error)
    is_invalid = isinstance(first, ApprovalInvalidError)
    error = ApiError(first.code, str(first), 400 if is_invalid else 409)
    if len(refused) > 1 and isinstance(first, ApprovalStaleError):
        error.message = "What some of these calls would change is another by now. Look at them."
    still = {
        each.approval_id for each in refused if not isinstance(each.error, ApprovalClosedError)
    }
    found = _drafts(request, [row for row in asked if row.id in still])
    drafts = {key: draft for key, draft in found.items() if draft.change or draft.errors}
    if any(draft.change for draft in drafts.values()):
        error.message = UNSEEN
    return _answered(request, asked, error, drafts)


def _drafts(request: PageRequest, rows: Iterable[Approval]) -> dict[UUID, Draft]:
    drafts = {}
    for row in rows:
        # Somebody may have decided it, here or elsewhere.
        with suppress(ApprovalClosedError):
            drafts[row.id] = _draft(request, row)
    return drafts


def _draft(request: PageRequest, approval: Approval) -> Draft:
    """What the person wrote, with what is wrong with it or else what it would do."""
    fields = argument_fields(approval.call.name, approvals.arguments_of(approval.call))
    names = {f"arguments.{field.name}": field.name for field in fields}
    errors: dict[str, list[str]] = {}
    change = None
    try:
        change = _change(request, approval)
    except ApprovalInvalidError as error:
        for field, said in error.fields.items():
            errors.setdefault(names.get(field, ""), []).extend(said)
    values = {
        field.name: request.POST.get(f"argument-{approval.id}-{field.name}", field.value)
        for field in fields
    }
    return Draft(_text(request, f"reason-{approval.id}"), values, errors, change)


def _change(request: PageRequest, approval: Approval) -> Change | None:
    edited = _edited(request, approval)
    if edited is None:
        return None
    found = approval_preview(owner=request.user, approval_id=approval.id, arguments=edited)
    return change_shown(found.digest, approvals.preview_shown(found))


def _answered(
    request: PageRequest,
    asked: Sequence[Approval],
    error: ApiError | None = None,
    drafts: Mapping[UUID, Draft] | None = None,
) -> HttpResponse:
    """The card as it is now; without a script the page that it was on, unless a draft would go."""
    drafts = drafts or {}
    first = asked[0]
    if not wants_json(request):
        if error is not None and not (drafts and error.code == "invalid"):
            messages.error(request, error.message)
        if drafts:
            waiting = _inbox(request, drafts)
            status = error.status_code if error else 200
            return render(request, "chat/approvals.html", {"waiting": waiting}, status=status)
        if "inbox" in request.POST:
            return redirect("chat:approvals")
        return redirect("chat:conversation", first.run.conversation_id)
    html = _part(request, first, drafts)
    if error is None:
        return JsonResponse({"html": html})
    error.extra["html"] = html
    return error_response(request, error)


def _part(request: PageRequest, approval: Approval, drafts: Mapping[UUID, Draft]) -> str:
    """The part of a page that shows what was asked: of the inbox, or of the conversation."""
    message_id = approval.call.message_id
    if "inbox" in request.POST:
        rows = approvals.approvals_together(owner=request.user, message_id=message_id)
        return render_to_string("chat/asked.html", {"asked": _asked(rows, drafts)})
    message = answer_shown(owner=request.user, run=approval.run, message_id=message_id)
    rows = approvals.approvals_together(owner=request.user, message_id=message_id)
    shown = {each.id: each for each in _shown(rows, drafts)}
    calls = tuple(
        replace(call, approval=shown[call.approval.id]) if call.approval else call
        for call in message.calls
    )
    return render_to_string("chat/calls_part.html", {"message": replace(message, calls=calls)})


def _inbox(request: PageRequest, drafts: Mapping[UUID, Draft]) -> list[Asked]:
    together: dict[UUID, list[Approval]] = {}
    for row in approvals.approvals_pending(owner=request.user)[:LISTED]:
        together.setdefault(row.call.message_id, []).append(row)
    return [_asked(rows, drafts) for rows in together.values()]


def _asked(rows: Sequence[Approval], drafts: Mapping[UUID, Draft]) -> Asked:
    shown = list(_shown(rows, drafts))
    message_id = rows[0].call.message_id
    return Asked(
        message_id=message_id,
        conversation=rows[0].run.conversation,
        decided=tuple(each for each in shown if each.decision),
        card=card_shown(message_id, shown),
    )


def _shown(rows: Iterable[Approval], drafts: Mapping[UUID, Draft]) -> Iterable[ShownApproval]:
    for row in rows:
        folded = approvals.approval_folded(row, row.call)
        yield approval_shown(folded, tool=row.call.name, draft=drafts.get(row.id))
