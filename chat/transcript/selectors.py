"""Reads of conversations, runs and messages for the doors, each scoped to its owner.

Querysets come with what their rows show already fetched: the number of queries does not grow with
the number of rows. A run's history for a provider is ``history``'s.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import Prefetch, QuerySet

from accounts.models import User
from chat.models import ACTIVE_STATUSES, Approval, Conversation, Message, Run, RunStatus, ToolCall


def conversation_list(*, owner: User, archived: bool | None = False) -> QuerySet[Conversation]:
    """The owner's conversations, the last active first; ``archived`` None gives both kinds."""
    rows = _conversations(owner).filter(ephemeral=False).order_by("-updated", "-id")
    return rows if archived is None else rows.filter(archived=archived)


def conversation_get(*, owner: User, conversation_id: UUID) -> Conversation:
    """Raises ``Conversation.DoesNotExist``. Its active run, if any, is in ``active_runs``."""
    return _conversations(owner).get(id=conversation_id)


def conversation_messages(*, owner: User, conversation_id: UUID) -> QuerySet[Message]:
    """The messages of the branch that is shown, the oldest first, with their tool calls.

    Raises ``Conversation.DoesNotExist``.
    """
    conversation = Conversation.objects.get(owner=owner, id=conversation_id)
    calls = ToolCall.objects.select_related("approval__decided_by")
    return (
        Message.objects.filter(id__in=_branch(conversation))
        .order_by("created", "id")
        .prefetch_related(Prefetch("tool_calls", calls.order_by("position")))
    )


def run_get(*, owner: User, run_id: UUID) -> Run:
    """Raises ``Run.DoesNotExist``."""
    return Run.objects.get(owner=owner, id=run_id)


def runs_active(*, owner_id: int) -> list[tuple[UUID, UUID, str]]:
    """The owner's runs that go on: id, conversation, status; the oldest first, at most 1,000."""
    rows = Run.objects.filter(owner_id=owner_id, status__in=ACTIVE_STATUSES)
    return list(rows.order_by("created").values_list("id", "conversation_id", "status")[:1000])


def approvals_waiting(*, owner_id: int) -> list[tuple[UUID, UUID]]:
    """What waits for the owner's word: approval and conversation, at most 1,000."""
    rows = Approval.objects.filter(
        owner_id=owner_id, decision="", run__status=RunStatus.AWAITING_APPROVAL
    )
    return list(rows.order_by("requested").values_list("id", "run__conversation_id")[:1000])


def conversation_exists(*, conversation_id: UUID) -> bool:
    """For a listener that was let in before: whether its conversation was deleted meanwhile."""
    return Conversation.objects.filter(id=conversation_id).exists()


def _conversations(owner: User) -> QuerySet[Conversation]:
    active = Run.objects.filter(status__in=ACTIVE_STATUSES)
    return Conversation.objects.filter(owner=owner).prefetch_related(
        Prefetch("runs", active, to_attr="active_runs")
    )


def _branch(conversation: Conversation) -> list[UUID]:
    """Ids from the shown tip up to the root. Only ids are read: whole branches may be long."""
    parents = dict(conversation.messages.order_by().values_list("id", "parent_id"))
    branch = []
    current = conversation.leaf_id
    while current is not None:
        branch.append(current)
        current = parents[current]
    return branch
