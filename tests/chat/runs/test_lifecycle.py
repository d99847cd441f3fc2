import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from uuid import UUID, uuid4

import pytest
from django.db import connections, transaction
from django.db.models.functions import Now
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from chat import events
from chat.exceptions import ConversationBusyError, FencedOut, MessageTooLargeError
from chat.models import Conversation, Message, Run, RunEvent, ToolCall
from chat.runs import lifecycle, records, resume
from chat.runs.records import Fence, Record
from chat.transcript.selectors import conversation_messages
from chat.types import Completion, ToolMessage, UserMessage
from chat.types import ToolCall as Call

pytestmark = pytest.mark.django_db


def begin(run) -> lifecycle.Begun:
    begun = lifecycle.run_begin(run_id=run.id)
    assert begun is not None
    return begun


def completed(message_id, *calls, iteration=1):
    return events.MessageCompleted(
        message_id=message_id,
        finish_reason="tool_use" if calls else "end_turn",
        completion=Completion(),
        calls=tuple(calls),
        iteration=iteration,
    )


def record(begun, text="", event=None, message_id=None):
    return Record(
        message_id=event.message_id if event else message_id or uuid4(),
        parent_id=begun.tip_id,
        text=text,
        thinking="",
        provider="scripted",
        model="m",
        event=event,
    )


def batch(begun, *, messages=(), started=(), results=(), logged=()):
    records.batch_record(
        fence=Fence(begun.run_id, begun.attempt, ""),
        messages=messages,
        started=started,
        results=results,
        logged=logged,
    )


def done_events(run):
    return [e.data for e in RunEvent.objects.filter(run=run, kind="done")]


def test_run_start_stores_the_message_and_queues_the_run(user):
    run = lifecycle.run_start(owner=user, content="Hello there\nmore")

    conversation = run.conversation
    assert conversation.title == "Hello there"
    assert conversation.leaf == run.message
    assert run.message.content == "Hello there\nmore"
    assert (run.status, run.attempt) == ("queued", 0)
    job = ProcrastinateJob.objects.get(id=run.job_id)
    assert (job.task_name, job.args) == ("chat.execute_run", {"run_id": str(run.id)})


def test_run_start_refuses_a_second_active_run_and_names_the_first(user):
    first = lifecycle.run_start(owner=user, content="one")

    with pytest.raises(ConversationBusyError) as caught:
        lifecycle.run_start(owner=user, content="two", conversation_id=first.conversation_id)

    assert caught.value.run_id == first.id
    assert Message.objects.count() == 1
    assert ProcrastinateJob.objects.count() == 1


def test_run_start_refuses_another_persons_conversation(user, other_user):
    run = lifecycle.run_start(owner=user, content="one")

    with pytest.raises(Conversation.DoesNotExist):
        lifecycle.run_start(owner=other_user, content="two", conversation_id=run.conversation_id)


def test_run_start_refuses_more_than_a_message_may_hold(user):
    with pytest.raises(MessageTooLargeError):
        lifecycle.run_start(owner=user, content="ä" * 100_001)

    assert not Conversation.objects.exists()


def test_run_start_leaves_nothing_behind_when_its_transaction_is_rolled_back(user):
    with pytest.raises(RuntimeError), transaction.atomic():
        lifecycle.run_start(owner=user, content="one")
        raise RuntimeError

    assert not ProcrastinateJob.objects.exists()


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_run_start_lets_exactly_one_of_two_at_the_same_instant_win(user):
    conversation = Conversation.objects.create(owner=user)
    barrier = Barrier(2)

    def start(content):
        try:
            barrier.wait(5)
            lifecycle.run_start(owner=user, content=content, conversation_id=conversation.id)
        except ConversationBusyError:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(2) as pool:
        for _ in range(200):
            won = list(pool.map(start, ["a", "b"]))
            assert sorted(won) == [False, True]
            for run in Run.objects.filter(conversation=conversation, status="queued"):
                lifecycle.run_close(run_id=run.id, reason="stopped")


def test_run_begin_raises_the_attempt_and_fences_the_one_before(user):
    run = lifecycle.run_start(owner=user, content="one")
    first = begin(run)
    second = begin(run)

    assert (first.attempt, second.attempt) == (1, 2)
    assert (first.interrupted, second.interrupted) == (False, True)
    with pytest.raises(FencedOut):
        records.draft_save(fence=Fence(run.id, 1, ""), record=record(first, "late"))
    records.draft_save(fence=Fence(run.id, 2, ""), record=record(second, "mine"))
    assert list(run.messages.values_list("content", flat=True)) == ["mine"]


def test_run_begin_refuses_a_finished_run(user):
    run = lifecycle.run_start(owner=user, content="one")
    lifecycle.run_close(run_id=run.id, reason="stopped")

    assert lifecycle.run_begin(run_id=run.id) is None


def test_run_begin_takes_on_the_unfinished_message_of_a_lost_attempt(user):
    run = lifecycle.run_start(owner=user, content="one")
    first = begin(run)
    message_id = uuid4()
    records.draft_save(
        fence=Fence(run.id, 1, ""), record=record(first, "so far", message_id=message_id)
    )

    second = begin(run)

    assert second.progress.open_message_id == message_id
    assert second.progress.iterations == 0
    assert second.progress.history == (UserMessage("one"),)


@pytest.fixture
def turning_back(monkeypatch):
    """Every host's clock is a minute behind that of the one before."""
    now, hosts = timezone.now(), itertools.count()
    monkeypatch.setattr(timezone, "now", lambda: now - next(hosts) * timedelta(minutes=1))


def test_run_goes_on_from_its_last_message_whatever_the_clocks_say(user, turning_back):
    run = lifecycle.run_start(owner=user, content="one")
    first = begin(run)
    batch(first, messages=[record(first, "Once", completed(uuid4()))])
    Message.objects.filter(content="Once").update(created=Now() + timedelta(hours=1))
    second = begin(run)
    batch(second, messages=[record(second, "more", completed(uuid4()))])

    assert Message.objects.get(id=begin(run).tip_id).content == "more"


def test_run_that_was_started_later_comes_later_whatever_the_clocks_say(user, turning_back):
    first = lifecycle.run_start(owner=user, content="one")
    lifecycle.run_close(run_id=first.id, reason="stopped")
    conversation_id = first.conversation_id
    second = lifecycle.run_start(owner=user, content="two", conversation_id=conversation_id)

    assert resume.run_after(conversation_id=conversation_id, run_id=first.id) == second.id
    messages = conversation_messages(owner=user, conversation_id=conversation_id)
    assert [message.content for message in messages] == ["one", "two"]


def test_run_begin_computes_pending_calls_from_the_rows(user):
    run = lifecycle.run_start(owner=user, content="one")
    begun = begin(run)
    calls = [Call(f"c{n}", "note_list", "{}") for n in range(3)]
    batch(begun, messages=[record(begun, "Let me look", completed(uuid4(), *calls))])
    batch(begun, started=["c0"])
    result = events.ToolResult(
        tool_call_id="c0",
        tool="note_list",
        content="ok",
        is_error=False,
        status="done",
        duration_ms=1,
    )
    batch(begun, results=[result])
    batch(begun, started=["c1"])

    progress = begin(run).progress

    assert [(p.call.id, p.was_running) for p in progress.pending] == [("c1", True), ("c2", False)]
    assert progress.iterations == 1
    assert progress.history[-1] == ToolMessage("c0", "note_list", "ok")


def test_run_close_is_won_by_exactly_one_and_done_is_written_once(user):
    run = lifecycle.run_start(owner=user, content="one")
    lifecycle.run_begin(run_id=run.id)

    first = lifecycle.run_close(run_id=run.id, reason="end_turn", attempt=1)
    second = lifecycle.run_close(run_id=run.id, reason="stopped")

    assert [item.event.name for item in first] == ["done"]
    assert second == ()
    assert [d["reason"] for d in done_events(run)] == ["end_turn"]
    run.refresh_from_db()
    assert (run.status, run.stop_reason) == ("finished", "end_turn")


def test_run_close_of_an_older_attempt_changes_nothing(user):
    run = lifecycle.run_start(owner=user, content="one")
    lifecycle.run_begin(run_id=run.id)
    lifecycle.run_begin(run_id=run.id)

    assert lifecycle.run_close(run_id=run.id, reason="end_turn", attempt=1) == ()
    run.refresh_from_db()
    assert run.status == "running"


def test_run_close_gives_every_open_call_a_result(user):
    run = lifecycle.run_start(owner=user, content="one")
    begun = begin(run)
    calls = [Call(f"c{n}", "note_list", "{}") for n in range(2)]
    batch(begun, messages=[record(begun, event=completed(uuid4(), *calls))])
    batch(begun, started=["c0"])

    logged = lifecycle.run_close(run_id=run.id, reason="stopped")

    assert [item.event.name for item in logged] == ["tool_result", "tool_result", "done"]
    rows = dict(ToolCall.objects.values_list("call_id", "status"))
    assert rows == {"c0": "unknown", "c1": "skipped"}
    assert all(call.result for call in ToolCall.objects.all())


def test_run_close_keeps_partial_text_marked_and_removes_an_empty_draft(user):
    run = lifecycle.run_start(owner=user, content="one")
    begun = begin(run)
    partial = record(begun, "Half an ans")
    records.draft_save(fence=Fence(run.id, 1, ""), record=partial)
    lifecycle.run_close(run_id=run.id, reason="stopped")

    message = Message.objects.get(id=partial.message_id)
    assert (message.content, message.stopped) == ("Half an ans", True)

    again = lifecycle.run_start(owner=user, content="two", conversation_id=run.conversation_id)
    begun = begin(again)
    records.draft_save(fence=Fence(again.id, 1, ""), record=record(begun, ""))
    lifecycle.run_close(run_id=again.id, reason="stopped")

    assert not again.messages.exists()
    conversation = Conversation.objects.get(id=run.conversation_id)
    assert conversation.leaf_id == again.message_id


def test_run_stop_cancels_a_waiting_job_and_closes_the_run_itself(user):
    run = lifecycle.run_start(owner=user, content="one")

    stopped = lifecycle.run_stop(owner=user, run_id=run.id)

    assert (stopped.status, stopped.stop_reason) == ("finished", "stopped")
    assert ProcrastinateJob.objects.get(id=run.job_id).status == "cancelled"


def test_run_stop_leaves_the_end_to_the_executor_while_its_job_runs(user):
    run = lifecycle.run_start(owner=user, content="one")
    lifecycle.run_begin(run_id=run.id)
    give_to_a_worker(run, seconds_since_heartbeat=1)

    stopped = lifecycle.run_stop(owner=user, run_id=run.id)

    assert stopped.status == "running"
    assert stopped.stop_requested is not None
    assert ProcrastinateJob.objects.get(id=run.job_id).abort_requested


def test_run_stop_closes_a_run_whose_worker_is_dead(user):
    run = lifecycle.run_start(owner=user, content="one")
    lifecycle.run_begin(run_id=run.id)
    give_to_a_worker(run, seconds_since_heartbeat=20)

    stopped = lifecycle.run_stop(owner=user, run_id=run.id)

    assert (stopped.status, stopped.stop_reason) == ("finished", "stopped")
    with pytest.raises(FencedOut):
        records.draft_save(fence=Fence(run.id, 1, ""), record=late_record(run))


def give_to_a_worker(run, *, seconds_since_heartbeat):
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) "
            "VALUES (now() - make_interval(secs => %s)) RETURNING id",
            [seconds_since_heartbeat],
        )
        (worker_id,) = cursor.fetchone()
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s WHERE id = %s",
            [worker_id, run.job_id],
        )


def late_record(run):
    return Record(
        message_id=uuid4(), parent_id=run.message_id, text="late", thinking="", provider="",
        model="",
    )  # fmt: skip


def test_run_stop_of_a_finished_run_changes_nothing(user):
    run = lifecycle.run_start(owner=user, content="one")
    lifecycle.run_close(run_id=run.id, reason="end_turn")

    assert lifecycle.run_stop(owner=user, run_id=run.id).stop_reason == "end_turn"


def test_run_stop_refuses_a_stranger_as_it_does_a_missing_run(user, other_user):
    run = lifecycle.run_start(owner=user, content="one")

    for owner, run_id in ((other_user, run.id), (user, UUID(int=5))):
        with pytest.raises(Run.DoesNotExist):
            lifecycle.run_stop(owner=owner, run_id=run_id)


def test_procrastinate_task_is_known_by_the_name_that_runs_are_deferred_with():
    app.perform_import_paths()

    assert lifecycle.EXECUTE_TASK in app.tasks
