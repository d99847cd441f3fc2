import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from chat.events import Notice
from chat.models import Conversation, Message, Run, RunEvent, ToolCall
from chat.runs import event_log
from chat.runs.lifecycle import run_start
from chat.transcript import conversations
from tests.chat.api.conftest import logged

pytestmark = pytest.mark.django_db


def test_update_changes_the_fields_named_and_no_others(user):
    made = conversations.conversation_create(owner=user, title="a", model="m")
    changed = conversations.conversation_update(
        owner=user, conversation_id=made.id, changes={"title": "b"}
    )
    assert (changed.title, changed.model, changed.updated) == ("b", "m", made.updated)


def test_update_refuses_fields_that_are_not_a_persons(user):
    made = conversations.conversation_create(owner=user)
    with pytest.raises(ValueError, match="owner_id"):
        conversations.conversation_update(
            owner=user, conversation_id=made.id, changes={"owner_id": 7}
        )


def test_strangers_change_and_delete_nothing(user, other_user):
    made = conversations.conversation_create(owner=user, title="a")
    for changes in ({"title": "b"}, {}):
        with pytest.raises(Conversation.DoesNotExist):
            conversations.conversation_update(
                owner=other_user, conversation_id=made.id, changes=changes
            )
    with pytest.raises(Conversation.DoesNotExist):
        conversations.conversation_delete(owner=other_user, conversation_id=made.id)
    assert Conversation.objects.get().title == "a"


def test_delete_removes_messages_runs_events_and_jobs(user):
    run = run_start(owner=user, content="Make a note.")
    kept = run_start(owner=user, content="Another.")
    Run.objects.filter(id=run.id).update(attempt=1)
    event_log.events_store(logged=logged(run, Notice(code="nudged", text="a")), origin="")
    conversations.conversation_delete(owner=user, conversation_id=run.conversation_id)
    assert list(Conversation.objects.all()) == [kept.conversation]
    assert list(Run.objects.all()) == [kept]
    assert list(Message.objects.all()) == [kept.message]
    assert not RunEvent.objects.exists()
    assert not ToolCall.objects.exists()
    assert [job.id for job in ProcrastinateJob.objects.all()] == [kept.job_id]


def test_delete_tells_a_worker_that_is_in_a_run_to_stop(user):
    run = run_start(owner=user, content="Make a note.")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = 'doing' WHERE id = %s", [run.job_id])
    conversations.conversation_delete(owner=user, conversation_id=run.conversation_id)
    assert not Conversation.objects.exists()
    assert ProcrastinateJob.objects.get().abort_requested
