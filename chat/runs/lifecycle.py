"""The life of a run: the only module that sets a run's status.

``queued -> running -> finished``, with ``awaiting_approval`` between running and queued. Owns
start, begin (one more attempt), pause, stop and end, each one transaction. What an executor writes
in between is in ``records``, what is written at the end in ``closing``; calling the model and the
tools is the ``executor``'s, the log's SQL is ``event_log``'s, the rows of approvals are
``approvals``'.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now
from procrastinate.contrib.django import app

from accounts.models import User
from chat import events
from chat.events import LoggedEvent
from chat.exceptions import ConversationBusyError, MessageTooLargeError, RunSupersededError
from chat.models import (
    ACTIVE_STATUSES,
    Conversation,
    Message,
    MessageRole,
    Run,
    RunStatus,
    ToolCall,
)
from chat.runs import approvals, closing, event_log, heartbeats, records, rules
from chat.runs.approvals import Card
from chat.runs.records import Fence, Record
from chat.transcript.history import run_progress
from chat.types import Progress, StopReason
from tools.approval import Approved
from tools.policy import Policy
from web import feed
from web.models import OwnerEventKind

logger = logging.getLogger(__name__)

EXECUTE_TASK = "chat.execute_run"
MESSAGE_BYTES = 200_000
_TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Begun:
    """What an executor needs to carry a run on. ``tip_id`` is the message to go on from.

    ``approved`` holds the person's word by call id; ``can_ask``: there is somebody to be asked;
    ``interrupted``: an attempt before was broken off, by a crash or a shutdown.
    """

    run_id: UUID
    attempt: int
    owner_id: int
    conversation_id: UUID
    message_id: UUID
    tip_id: UUID
    model: str
    system: str
    progress: Progress
    used_ids: frozenset[str]
    stop_requested: bool
    policy: Policy
    approved: Mapping[str, Approved]
    can_ask: bool
    interrupted: bool


def run_start(
    *, owner: User, content: str, conversation_id: UUID | None = None, model: str = ""
) -> Run:
    """Store the user's message, make the run and queue it, in one transaction.

    Without ``conversation_id`` a conversation is made. Raises ``Conversation.DoesNotExist``,
    ``ConversationBusyError`` with the active run's id, ``MessageTooLargeError``.
    """
    if len(content.encode()) > MESSAGE_BYTES:
        raise MessageTooLargeError(f"A message holds at most {MESSAGE_BYTES:,} bytes.")
    with _one_active_run(conversation_id):
        if conversation_id is None:
            conversation = Conversation(owner=owner, model=model)
        else:
            # First the run, then its conversation: executors lock them in this order too.
            _awaiting_close(owner=owner, conversation_id=conversation_id)
            conversation = Conversation.objects.select_for_update().get(
                id=conversation_id, owner=owner
            )
        message = Message(
            conversation=conversation,
            parent_id=conversation.leaf_id,
            role=MessageRole.USER,
            content=content,
        )
        conversation.title = conversation.title or _title(content)
        # Its row may come later: foreign keys are looked at when all is committed.
        conversation.leaf_id = message.id
        if conversation_id is None:
            conversation.save(force_insert=True)
        else:
            conversation.save(update_fields=["title", "leaf", "updated"])
        message.save(force_insert=True)
        return _run_make(
            conversation=conversation,
            message=message,
            model=model,
            is_first=conversation_id is None,
        )


@contextmanager
def _one_active_run(conversation_id: UUID | None) -> Iterator[None]:
    """The transaction that makes a run; what it began is undone where another one is active."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError:
        runs = Run.objects.filter(status__in=ACTIVE_STATUSES)
        active = runs.filter(conversation=conversation_id).first() if conversation_id else None
        if active is None:
            raise
        is_awaiting = active.status == RunStatus.AWAITING_APPROVAL
        raise ConversationBusyError(active.id, is_awaiting=is_awaiting) from None


def _awaiting_close(*, owner: User, conversation_id: UUID) -> None:
    """A new message says enough: what waits for an approval in this conversation is stopped."""
    awaiting = Run.objects.select_for_update(no_key=True).filter(
        owner=owner, conversation_id=conversation_id, status=RunStatus.AWAITING_APPROVAL
    )
    for run in awaiting:
        run_close(run_id=run.id, reason="stopped")


def run_continue(*, owner: User, run_id: UUID, model: str = "") -> Run:
    """A new run on the same user message, with fresh iterations, that goes on from what is there.

    Raises ``Run.DoesNotExist``, ``ConversationBusyError``, ``RunSupersededError``.
    """
    return _run_again(owner=owner, run_id=run_id, model=model, keep_answer=True)


def run_retry(*, owner: User, run_id: UUID, model: str = "") -> Run:
    """A new answer to the same user message, a sibling of the old one, which is kept.

    Raises ``Run.DoesNotExist``, ``ConversationBusyError``, ``RunSupersededError``.
    """
    return _run_again(owner=owner, run_id=run_id, model=model, keep_answer=False)


def _run_again(*, owner: User, run_id: UUID, model: str, keep_answer: bool) -> Run:
    ended = Run.objects.select_related("message").get(id=run_id, owner=owner)
    with _one_active_run(ended.conversation_id):
        conversation = Conversation.objects.select_for_update().get(id=ended.conversation_id)
        base_id = _tip(ended) if keep_answer else ended.message_id
        is_last = _answered_id(conversation) == ended.message_id
        if not is_last or (keep_answer and conversation.leaf_id != base_id):
            raise RunSupersededError(
                "Later messages follow this answer, and would be hidden: write a new one instead."
                if not is_last
                else "Another answer has taken the place of this one, or goes on from it: go on "
                "from that one instead."
            )
        conversation.leaf_id = base_id
        conversation.save(update_fields=["leaf", "updated"])
        return _run_make(
            conversation=conversation, message=ended.message, base_id=base_id, model=model
        )


def _answered_id(conversation: Conversation) -> UUID | None:
    """The last message of the person in the branch that is shown."""
    leaf = conversation.leaf
    return leaf.run.message_id if leaf and leaf.run else conversation.leaf_id


def _run_make(
    *,
    conversation: Conversation,
    message: Message,
    model: str,
    base_id: UUID | None = None,
    is_first: bool = False,
) -> Run:
    """Insert a run with the job that carries it: no worker sees the one before the other.

    Nobody can follow a conversation yet of which this is the first run.
    """
    run = Run(
        owner_id=conversation.owner_id,
        conversation=conversation,
        message=message,
        base_id=base_id,
        model=model or conversation.model,
    )
    run.job_id = _job_defer(run)
    run.save(force_insert=True)
    changes = [_change(run, OwnerEventKind.RUN_QUEUED)]
    if is_first:
        changes.insert(0, feed.Change(OwnerEventKind.CONVERSATION_CREATED, conversation.id))
    else:
        event_log.news_notify(ids=[conversation.id])
    feed.owner_events_record(owner_id=run.owner_id, changes=changes)
    return run


def _job_defer(run: Run) -> int:
    return app.configure_task(EXECUTE_TASK, lock=f"run:{run.id}").defer(run_id=str(run.id))


def run_defer(*, run_id: UUID) -> None:
    """Give a run that goes on a new job: its old one is gone. Raises ``Run.DoesNotExist``."""
    _run_defer(Run.objects.get(id=run_id, status__in=ACTIVE_STATUSES))


def _run_defer(run: Run) -> None:
    run.job_id = _job_defer(run)
    run.save(update_fields=["job_id"])
    event_log.news_notify(ids=[run.conversation_id])
    _change_record(run, OwnerEventKind.RUN_QUEUED)


def _change_record(run: Run, kind: OwnerEventKind) -> None:
    """In the transaction that sets the status: the owner's listeners hear of it."""
    feed.owner_events_record(owner_id=run.owner_id, changes=[_change(run, kind)])


def _change(run: Run, kind: OwnerEventKind) -> feed.Change:
    return feed.Change(kind, run.id, parent_id=run.conversation_id)


def run_begin(*, run_id: UUID) -> Begun | None:
    """One more attempt at a run, or None where it is over. Fences every earlier attempt."""
    with transaction.atomic():
        # What waits in its turn, or after a decision, is queued; what was broken off still runs.
        interrupted = not _begun(run_id, RunStatus.QUEUED)
        if interrupted and not _begun(run_id, RunStatus.RUNNING):
            return None
        run = Run.objects.select_related("conversation", "owner").get(id=run_id)
        _change_record(run, OwnerEventKind.RUN_RUNNING)
        tip_id = _tip(run)
        used = ToolCall.objects.filter(conversation_id=run.conversation_id)
        return Begun(
            run_id=run.id,
            attempt=run.attempt,
            owner_id=run.owner_id,
            conversation_id=run.conversation_id,
            message_id=run.message_id,
            tip_id=tip_id,
            model=run.model,
            system=run.conversation.system_prompt,
            progress=run_progress(run=run, tip_id=tip_id),
            used_ids=frozenset(used.values_list("call_id", flat=True)),
            stop_requested=run.stop_requested is not None,
            policy=rules.policy_of(owner=run.owner, conversation_id=run.conversation_id),
            approved=approvals.approved_calls(run=run),
            can_ask=not run.conversation.ephemeral,
            interrupted=interrupted,
        )


def _begun(run_id: UUID, status: RunStatus) -> bool:
    changed = Run.objects.filter(id=run_id, status=status).update(
        attempt=F("attempt") + 1,
        status=RunStatus.RUNNING,
        started=Coalesce(F("started"), Now()),
    )
    return changed > 0


def _tip(run: Run) -> UUID:
    """The last message of the run's own branch; what it follows where nothing came yet.

    It is the one that none of them follows: clocks may say otherwise.
    """
    last = run.messages.exclude(children__run=run).values_list("id", flat=True).first()
    return last or run.base_id or run.message_id


def run_name(*, fence: Fence, provider: str, model: str) -> None:
    """Record who answers, once the model is chosen."""
    Run.objects.filter(id=fence.run_id, attempt=fence.attempt).update(
        provider=provider, model=model
    )


def run_pause(
    *,
    fence: Fence,
    cards: Sequence[Card],
    failed: Sequence[events.ToolResult],
    unsent: Sequence[LoggedEvent],
) -> tuple[LoggedEvent, ...]:
    """Ask a person about calls, in one transaction; nothing of the run is held while they think.

    ``failed`` are calls that could not be put to them. Where no other is left the run goes on in
    another job, as after a decision.
    """
    with transaction.atomic():
        run = records.fenced(fence)
        if run.stop_requested is not None:
            return run_close(run_id=run.id, reason="stopped", unsent=unsent, origin=fence.origin)
        event_log.events_store(logged=unsent, origin=fence.origin)
        for result in failed:
            records.result_write(run, result)
        required = approvals.approvals_ask(run=run, cards=cards)
        logged = event_log.events_append(
            run_id=run.id,
            attempt=run.attempt,
            appended=[*failed, *required],
            origin=fence.origin,
        )
        if required:
            Run.objects.filter(id=run.id).update(status=RunStatus.AWAITING_APPROVAL)
            _change_record(run, OwnerEventKind.RUN_AWAITING_APPROVAL)
        else:
            run_requeue(run=run)
    return logged


def run_requeue(*, run: Run) -> None:
    """Queue the continuation of a run that waits for nobody any more; its row is locked."""
    Run.objects.filter(id=run.id).update(status=RunStatus.QUEUED)
    _run_defer(run)


def run_expire(*, run_id: UUID) -> None:
    """End a run that waits for an approval that has run out, unless it was decided meanwhile."""
    with transaction.atomic():
        run = (
            Run.objects.select_for_update(no_key=True)
            .filter(id=run_id, status=RunStatus.AWAITING_APPROVAL)
            .first()
        )
        if run is not None and approvals.is_late(run_id=run_id):
            run_close(run_id=run_id, reason="deadline")


def run_stop(*, owner: User, run_id: UUID) -> Run:
    """Ask for the end of a run, from anywhere. A run that nobody executes is closed at once.

    Raises ``Run.DoesNotExist``. A finished run is returned as it is.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update(no_key=True).get(id=run_id, owner=owner)
        if run.status == RunStatus.FINISHED:
            return run
        Run.objects.filter(id=run_id).update(stop_requested=Coalesce(F("stop_requested"), Now()))
        is_awaiting = run.status == RunStatus.AWAITING_APPROVAL
        if is_awaiting or not _job_abort(run.job_id):
            run_close(run_id=run_id, reason="stopped")
        run.refresh_from_db()
    return run


def _job_abort(job_id: int | None) -> bool:
    """Whether a living worker has the job and was told to end it; a waiting job is cancelled."""
    if job_id is None or not app.job_manager.cancel_job_by_id(job_id, abort=True):
        return False
    return heartbeats.job_is_carried(job_id=job_id)


def run_close(
    *,
    run_id: UUID,
    reason: StopReason,
    attempt: int | None = None,
    error: events.ErrorOccurred | None = None,
    draft: Record | None = None,
    unsent: Sequence[LoggedEvent] = (),
    origin: str = "",
) -> tuple[LoggedEvent, ...]:
    """End a run in one transaction; ``done`` is the last thing written. Only one caller wins.

    ``attempt`` fences an executor; None closes whatever attempt there is. ``unsent`` are events
    that come before, ``draft`` is the text so far of an unfinished message, which whoever is not
    the executor leaves to the log. Returns the events to be published, empty where the run was
    closed already.
    """
    with transaction.atomic():
        runs = Run.objects.select_for_update(no_key=True).filter(
            id=run_id, status__in=ACTIVE_STATUSES
        )
        run = (runs if attempt is None else runs.filter(attempt=attempt)).first()
        if run is None:
            return ()
        event_log.events_store(logged=unsent, origin=origin)
        told = closing.all_closed(run=run, draft=draft, reason=reason, origin=origin)
        if error is not None:
            told.append(error)
        Run.objects.filter(id=run_id).update(
            status=RunStatus.FINISHED,
            stop_reason=reason,
            finished=Now(),
            started=Coalesce(F("started"), Now()),
            **closing.error_columns(error),
        )
        done = closing.done_event(run, reason)
        logged = event_log.events_append(
            run_id=run.id, attempt=run.attempt, appended=[*told, done], origin=origin
        )
        _change_record(run, OwnerEventKind.RUN_FINISHED)
    closing.run_report(run, done)
    return logged


def _title(content: str) -> str:
    line = next((part.strip() for part in content.splitlines() if part.strip()), "")
    if len(line) <= _TITLE_CHARACTERS:
        return line
    return line[: _TITLE_CHARACTERS - 1].rstrip() + "…"
