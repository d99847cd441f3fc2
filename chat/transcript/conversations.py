"""Services of conversations: make, change, delete. Messages in them come from runs.

Each is one transaction and scoped to its owner inside the query; another person's conversation is
a missing one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from accounts.models import User
from chat.models import ACTIVE_STATUSES, Conversation, Run
from chat.runs import event_log
from chat.runs.lifecycle import run_stop
from web import feed
from web.models import OwnerEventKind

#: What a person may change.
CHANGEABLE = frozenset({"title", "model", "system_prompt", "archived"})
SYSTEM_PROMPT_BYTES = 64 * 1024


def conversation_create(
    *,
    owner: User,
    title: str = "",
    model: str = "",
    system_prompt: str = "",
    archived: bool = False,
) -> Conversation:
    with transaction.atomic():
        conversation = Conversation.objects.create(
            owner=owner, title=title, model=model, system_prompt=system_prompt, archived=archived
        )
        _change_record(owner, conversation.id, OwnerEventKind.CONVERSATION_CREATED)
    return conversation


def conversation_update(
    *, owner: User, conversation_id: UUID, changes: Mapping[str, Any]
) -> Conversation:
    """Change the fields named. Raises ``Conversation.DoesNotExist``.

    A rename does not move the conversation in the list: ``updated`` tells of its last message.
    """
    if unknown := changes.keys() - CHANGEABLE:
        raise ValueError(f"Not to be changed: {', '.join(sorted(unknown))}")
    rows = Conversation.objects.filter(owner=owner, id=conversation_id)
    unlike = Q(*(~Q(**{name: value}) for name, value in changes.items()), _connector=Q.OR)
    with transaction.atomic():
        if changes and rows.filter(unlike).update(**changes):
            _change_record(owner, conversation_id, OwnerEventKind.CONVERSATION_CHANGED)
        return rows.get()


def conversation_delete(*, owner: User, conversation_id: UUID) -> None:
    """Delete it with its messages, runs, events and jobs. Raises ``Conversation.DoesNotExist``.

    A run that goes on is told to stop; what it still writes finds no row.
    """
    with transaction.atomic():
        # First the runs, then their conversation: executors lock them in this order too.
        active = Run.objects.filter(owner=owner, status__in=ACTIVE_STATUSES)
        for run in active.filter(conversation_id=conversation_id):
            run_stop(owner=owner, run_id=run.id)
        rows = Conversation.objects.select_for_update()
        conversation = rows.get(owner=owner, id=conversation_id)
        for run in active.filter(conversation_id=conversation_id):
            run_stop(owner=owner, run_id=run.id)
        _jobs_delete(list(conversation.runs.values_list("job_id", flat=True)))
        run_ids = list(conversation.runs.values_list("id", flat=True))
        conversation.delete()
        event_log.news_notify(ids=[conversation_id, *run_ids])
        _change_record(owner, conversation_id, OwnerEventKind.CONVERSATION_DELETED)


def _change_record(owner: User, conversation_id: UUID, kind: OwnerEventKind) -> None:
    feed.owner_events_record(owner_id=owner.pk, changes=[feed.Change(kind, conversation_id)])


def _jobs_delete(job_ids: list[int | None]) -> None:
    """Job rows but for one that a worker is in: that one ends by itself and holds an id only."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM procrastinate_jobs WHERE id = ANY(%s) AND status <> 'doing'", [job_ids]
        )
