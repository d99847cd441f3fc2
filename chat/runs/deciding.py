"""A person's word on a call: checked against what the call would do now, stored, carried out.

One decision is one transaction and one conditional update, whichever process it reaches; the one
that leaves nothing pending queues the run's continuation. Rows of approvals are ``approvals``', the
status of the run is ``lifecycle``'s.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.models import ApiToken, User
from chat.events import Event
from chat.exceptions import ApprovalClosedError, ApprovalInvalidError, ApprovalStaleError
from chat.models import (
    Approval,
    ApprovalDecision,
    ApprovalScope,
    Run,
    RunStatus,
)
from chat.runs import approvals, event_log, lifecycle, rules
from chat.runs.calling import is_tainted
from chat.transcript.history import branch_rows, history_messages
from tools.approval import canonical
from tools.arguments import parse_arguments
from tools.definitions import Outcome, ToolContext
from tools.exceptions import ArgumentsError, ToolError
from tools.invocation import Described, describe
from tools.policy import Policy
from tools.registry import Tool, registry

Decision = Literal["approved", "denied"]

PREVIEW_SECONDS = 10.0
NOT_SEEN = "This is not what was looked at. Look at it again."


@dataclass(frozen=True, slots=True)
class _Word:
    """What a person says. ``arguments`` is canonical text; None leaves the model's."""

    owner: User
    decision: ApprovalDecision
    reason: str
    arguments: str | None
    scope: ApprovalScope
    go_on: bool
    via: ApiToken | None
    seen: str | None

    def is_that_of(self, approval: Approval) -> bool:
        """Whether that one did all that this one would: it may have made a rule besides."""
        taken = (approval.decision, approval.arguments, approval.go_on)
        reaches = self.scope in (ApprovalScope.ONCE, approval.scope)
        return reaches and taken == (self.decision, self.arguments, self.go_on)


def approval_preview(*, owner: User, approval_id: UUID, arguments: Mapping[str, Any]) -> Described:
    """What the call would do now with ``arguments`` in the place of the model's; changes nothing.

    Its digest is what a word with these arguments names as ``seen``. Raises
    ``Approval.DoesNotExist``, ``ApprovalClosedError``, ``ApprovalInvalidError``.
    """
    approval = approvals.approval_get(owner=owner, approval_id=approval_id)
    is_late = approval.expires <= timezone.now()
    if approval.decision or is_late or approval.run.status != RunStatus.AWAITING_APPROVAL:
        raise _closed_error(approval)
    return _described_edited(approval, _canonical(arguments), _policy(approval))


def approval_decide(
    *,
    owner: User,
    approval_id: UUID,
    decision: Decision,
    reason: str = "",
    arguments: Mapping[str, Any] | None = None,
    scope: str = ApprovalScope.ONCE,
    go_on: bool = False,
    via: ApiToken | None = None,
    seen: str | None = None,
) -> Approval:
    """Take a person's word; the same word again changes nothing.

    ``arguments`` take the place of the model's, ``go_on`` lets the model go on after a denial,
    ``seen`` is the digest of what the person looked at, where that is known: of the approval, or of
    the preview of their arguments.
    Raises ``Approval.DoesNotExist``, ``ApprovalClosedError``, ``ApprovalStaleError`` (the approval
    shows then what the call would do now), ``ApprovalInvalidError``.
    """
    approval = approvals.approval_get(owner=owner, approval_id=approval_id)
    word = _Word(
        owner=owner,
        decision=ApprovalDecision(decision),
        reason=reason,
        arguments=None if arguments is None else _canonical(arguments),
        scope=ApprovalScope(scope),
        go_on=go_on,
        via=via,
        seen=seen,
    )
    found = edited = None
    if word.decision == ApprovalDecision.APPROVED and not approval.decision:
        _check_scope(approval, word)
        policy = _policy(approval)
        found = edited = _described(approval, approval.call.arguments, policy)
        if word.arguments is not None:
            edited = _described_edited(approval, word.arguments, policy)
    with transaction.atomic():
        run = Run.objects.select_for_update(no_key=True).filter(id=approval.run_id).first()
        if run is None:  # its conversation was deleted meanwhile
            raise Approval.DoesNotExist
        approval = approvals.approval_get(owner=owner, approval_id=approval_id)
        if approval.decision or run.status != RunStatus.AWAITING_APPROVAL:
            return _closed(approval, word)
        is_late = approval.expires <= timezone.now()
        is_seen = found is None or _is_edited_seen(edited, word) or _is_shown(approval, found, word)
        is_stale = not is_late and not is_seen
        if is_late:
            lifecycle.run_expire(run_id=run.id)
        elif is_stale and found is not None:
            _append(run, _refreshed(approval, found))
        else:
            _take(run, approval, word, edited)
    if is_late:
        raise ApprovalClosedError("This approval has run out.", approval_id=approval.id)
    if is_stale:
        is_other = isinstance(found, Described) and found.digest == approval.digest
        raise ApprovalStaleError(approval.id, NOT_SEEN if is_other else _stale(found))
    return approvals.approval_get(owner=owner, approval_id=approval_id)


#: Why a word may not be taken.
REFUSALS = (ApprovalClosedError, ApprovalStaleError, ApprovalInvalidError)


@dataclass(frozen=True, slots=True)
class Refused:
    """A word that was not taken, and why."""

    approval_id: UUID
    error: ApprovalClosedError | ApprovalStaleError | ApprovalInvalidError


def approvals_decide(
    *,
    owner: User,
    approval_ids: Sequence[UUID],
    decision: Decision,
    reason: str = "",
    arguments: Mapping[UUID, Mapping[str, Any]] | None = None,
    go_on: bool = False,
    seen: Mapping[UUID, str] | None = None,
) -> list[Refused]:
    """The same word on several calls, each on its own: what cannot be taken keeps its place.

    ``arguments`` and ``seen`` are by approval. The ids are in the order of the calls; denials are
    taken from the last to the first, since one closes all that come after it. Raises
    ``Approval.DoesNotExist``.
    """
    refused = []
    edited = arguments or {}
    for approval_id in reversed(approval_ids) if decision == "denied" else approval_ids:
        try:
            approval_decide(
                owner=owner,
                approval_id=approval_id,
                decision=decision,
                reason=reason,
                arguments=edited.get(approval_id),
                go_on=go_on,
                seen=(seen or {}).get(approval_id),
            )
        except REFUSALS as error:
            refused.append(Refused(approval_id, error))
    return refused


def _canonical(arguments: Mapping[str, Any]) -> str:
    """The arguments as they will be read again: clean text, one order."""
    try:
        return canonical(parse_arguments(json.dumps(arguments)))
    except ToolError as error:
        raise _invalid("arguments", str(error)) from None


def _invalid(field: str, message: str) -> ApprovalInvalidError:
    return ApprovalInvalidError(message, fields={field: [message]})


def _fit(tool: Tool | None, arguments: str) -> None:
    """Raises ``ApprovalInvalidError``, which says of each argument what is wrong with it."""
    try:
        if tool is not None:
            tool.signature.bind(parse_arguments(arguments))
    except ArgumentsError as error:
        fields = {f"arguments.{name}": said for name, said in error.faults.items()}
        raise ApprovalInvalidError(str(error), fields=fields) from None


def _described_edited(approval: Approval, arguments: str, policy: Policy) -> Described:
    """What the call would do as the person changed it. Raises ``ApprovalInvalidError``."""
    edited = _described(approval, arguments, policy)
    if isinstance(edited, Outcome):
        _fit(registry.get(approval.call.name), arguments)
        raise _invalid("arguments", edited.content)
    return edited


def _described(approval: Approval, arguments: str, policy: Policy) -> Described | Outcome:
    """What the call would do now; in the thread of a door, like every other of its queries."""
    call = approval.call
    conversation_id = approval.run.conversation_id
    return describe(
        name=call.name,
        arguments=arguments,
        context=ToolContext(
            user_id=approval.owner_id,
            deadline=time.monotonic() + PREVIEW_SECONDS,
            conversation_id=conversation_id,
            message_id=approval.run.message_id,
            run_id=approval.run_id,
            call_id=call.call_id,
            tainted=policy.tainted,
        ),
        policy=policy,
    )


def _policy(approval: Approval) -> Policy:
    """What was said by now, and whether the model had been shown text from outside."""
    call = approval.call
    branch = branch_rows(conversation_id=call.conversation_id, tip_id=call.message_id)
    said = rules.policy_of(owner=approval.owner, conversation_id=call.conversation_id)
    return replace(said, tainted=is_tainted(history_messages(messages=branch)))


def _check_scope(approval: Approval, word: _Word) -> None:
    if word.scope not in approval.preview.get("scopes", ()):
        message = "A rule would not end the asking about this call."
        raise _invalid("scope", message)


def _is_edited_seen(edited: Described | Outcome | None, word: _Word) -> bool:
    """Whether the person looked at what their own arguments would do, which is all that runs."""
    if word.arguments is None or not isinstance(edited, Described):
        return False
    return word.seen == edited.digest


def _is_shown(approval: Approval, found: Described | Outcome, word: _Word) -> bool:
    """Whether the person saw what the call would do."""
    if not isinstance(found, Described) or found.digest != approval.digest:
        return False
    return word.seen in (None, approval.digest)


def _refreshed(approval: Approval, found: Described | Outcome) -> list[Event]:
    """What is told where the approval does not show already what was found."""
    if isinstance(found, Outcome):
        known = approval.digest == ""
        return [] if known else [approvals.approval_void(approval=approval, said=found.content)]
    if found.digest == approval.digest:
        return []
    return [approvals.approval_refresh(approval=approval, described=found)]


def _stale(found: Described | Outcome | None) -> str:
    if isinstance(found, Outcome):
        return f"This can no longer be done: {found.content} Deny it."
    return "What this call would change is another by now. Look at it again."


def _closed(approval: Approval, word: _Word) -> Approval:
    if word.is_that_of(approval):
        return approval
    raise _closed_error(approval)


def _closed_error(approval: Approval) -> ApprovalClosedError:
    if approval.decision in ("", ApprovalDecision.EXPIRED):
        said = "This is no longer awaited: it ran out, or the answer was stopped."
    else:
        said = f"This was already decided: {approval.decision}."
    return ApprovalClosedError(said, approval_id=approval.id)


def _take(run: Run, approval: Approval, word: _Word, edited: Described | Outcome | None) -> None:
    columns: dict[str, Any] = {}
    if isinstance(edited, Described):
        columns = {"digest": edited.digest, "version": edited.preview.version}
    resolved = approvals.approval_resolve(
        approval=approval,
        decision=word.decision,
        owner=word.owner,
        via=word.via,
        reason=word.reason,
        arguments=word.arguments,
        scope=word.scope,
        go_on=word.go_on,
        **columns,
    )
    told: list[Event] = [resolved] if resolved else []
    if word.decision == ApprovalDecision.DENIED and not word.go_on:
        told += approvals.approvals_close(
            run=run, after=approval.call.position, reason="An earlier call was denied."
        )
    if word.scope != ApprovalScope.ONCE:
        _rule(run, approval, word)
    _append(run, told)
    if not approvals.is_awaited(run_id=run.id):
        lifecycle.run_requeue(run=run)


def _rule(run: Run, approval: Approval, word: _Word) -> None:
    tool = registry.get(approval.call.name)
    if tool is None or word.decision != ApprovalDecision.APPROVED:
        return
    only_here = word.scope == ApprovalScope.CONVERSATION
    rules.rule_allow(
        owner=word.owner,
        tool=tool,
        conversation=run.conversation if only_here else None,
    )


def _append(run: Run, told: list[Event]) -> None:
    event_log.events_append(run_id=run.id, attempt=run.attempt, appended=told, origin="")
