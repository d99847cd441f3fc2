"""What a person said about tools: their mode and their own rules, as the policy of a run.

Owns the rows of rules. What follows from a policy is decided in ``tools.policy``.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import msgspec
from django.conf import settings
from django.db.models import Q, QuerySet

from accounts.models import User
from chat.exceptions import ApprovalModeFixedError
from chat.models import Conversation, ToolRule
from tools.approval import tool_digest
from tools.policy import Decision, Mode, Policy, operator_policy
from tools.registry import Tool, registry


def policy_of(*, owner: User, conversation_id: UUID | None = None) -> Policy:
    """What was said about tools by the operator and by the person, in this conversation."""
    said = Q(conversation=None)
    if conversation_id is not None:
        said |= Q(conversation_id=conversation_id)
    rows = ToolRule.objects.filter(said, owner=owner)
    rules: dict[str, Decision] = {}
    # The rule of a conversation comes last: it says more.
    for row in sorted(rows, key=lambda row: row.conversation_id is not None):
        if rule_holds(row):
            rules[row.tool] = msgspec.convert(row.decision, Decision)
    return replace(operator_policy(), rules=rules, mode=mode_of(owner=owner))


def mode_of(*, owner: User) -> Mode:
    """How often the person is asked; the operator may have said so for everybody."""
    said: str = settings.NOTEWIRE_APPROVAL_MODE or owner.approval_mode
    return "careful" if said == "careful" else "balanced"


def mode_set(*, owner: User, mode: Mode) -> None:
    """Raises ``ApprovalModeFixedError`` where the operator chose another for everybody."""
    if settings.NOTEWIRE_APPROVAL_MODE not in ("", mode):
        raise ApprovalModeFixedError(settings.NOTEWIRE_APPROVAL_MODE)
    User.objects.filter(pk=owner.pk).update(approval_mode=mode)
    owner.approval_mode = mode


def rule_holds(rule: ToolRule) -> bool:
    """Whether the tool is still what it was when the person said so."""
    tool = registry.get(rule.tool)
    return tool is not None and tool_digest(tool) == rule.digest


def rule_allow(*, owner: User, tool: Tool, conversation: Conversation | None = None) -> None:
    """Do not ask about this tool again, in one conversation or in all."""
    ToolRule.objects.update_or_create(
        owner=owner,
        tool=tool.name,
        conversation=conversation,
        defaults={"digest": tool_digest(tool), "decision": "allow"},
    )


def rule_list(*, owner: User) -> QuerySet[ToolRule]:
    rows = ToolRule.objects.filter(owner=owner).select_related("conversation")
    return rows.order_by("-created", "-id")


def rule_delete(*, owner: User, rule_id: UUID) -> None:
    """Raises ``ToolRule.DoesNotExist``."""
    deleted, _ = ToolRule.objects.filter(owner=owner, id=rule_id).delete()
    if not deleted:
        raise ToolRule.DoesNotExist
