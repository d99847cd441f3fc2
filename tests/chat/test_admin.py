import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection

from chat.models import Conversation, Message, MessageRole
from chat.runs.lifecycle import run_start
from chat.runs.operating import runs_unfinished

SECRET = "the surgeon said so"


@pytest.fixture
def operator(client_of, db):
    return client_of(get_user_model().objects.create_superuser("root", password="root"))


@pytest.fixture
def run(user):
    conversation = Conversation.objects.create(owner=user, title=SECRET, system_prompt=SECRET)
    return run_start(owner=user, conversation_id=conversation.id, content=SECRET)


@pytest.mark.parametrize("kind", ["conversation", "run"])
def test_admin_shows_metadata_and_nothing_that_anybody_wrote(operator, run, kind):
    Message.objects.create(
        conversation=run.conversation, role=MessageRole.ASSISTANT, content=SECRET
    )
    shown_id = run.id if kind == "run" else run.conversation_id
    for page in (f"/admin/chat/{kind}/", f"/admin/chat/{kind}/{shown_id}/change/"):
        response = operator.get(page)
        assert response.status_code == 200
        assert str(shown_id) in response.content.decode()
        assert SECRET not in response.content.decode()


@pytest.mark.parametrize("kind", ["conversation", "run"])
def test_admin_finds_by_id_and_owner_alone(operator, run, user, kind):
    shown_id = run.id if kind == "run" else run.conversation_id

    def finds(words) -> bool:
        page = operator.get(f"/admin/chat/{kind}/", {"q": words})
        assert page.status_code == 200
        return f"/admin/chat/{kind}/{shown_id}/change/" in page.content.decode()

    assert finds(str(shown_id))
    assert finds(user.username)
    assert not finds(SECRET)
    assert not finds("surgeon")


@pytest.mark.parametrize("kind", ["conversation", "run"])
def test_admin_makes_changes_and_deletes_nothing(operator, run, kind):
    shown_id = run.id if kind == "run" else run.conversation_id
    assert operator.get(f"/admin/chat/{kind}/add/").status_code == 403
    assert operator.get(f"/admin/chat/{kind}/{shown_id}/delete/").status_code == 403
    assert operator.post(f"/admin/chat/{kind}/{shown_id}/change/", {}).status_code == 403


def test_queries_of_the_list_do_not_grow_with_its_rows(
    operator, user, django_assert_max_num_queries
):
    Conversation.objects.bulk_create(Conversation(owner=user) for _ in range(30))
    with django_assert_max_num_queries(8):
        operator.get("/admin/chat/conversation/")


def act(operator, action, *runs):
    body = {"action": action, "_selected_action": [str(run.id) for run in runs]}
    return operator.post("/admin/chat/run/", body, follow=True)


def test_operator_stops_a_run(operator, run):
    page = act(operator, "stop", run)
    run.refresh_from_db()
    assert (run.status, run.stop_reason) == ("finished", "stopped")
    assert "Told 1 of 1 runs to stop." in page.content.decode()
    assert LogEntry.objects.get().object_id == str(run.id)
    act(operator, "stop", run)
    assert LogEntry.objects.count() == 1


def test_operator_requeues_only_what_has_stalled(operator, run):
    assert "Requeued 0 of 1" in act(operator, "requeue", run).content.decode()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
    assert "Requeued 1 of 1" in act(operator, "requeue", run).content.decode()
    assert runs_unfinished()[0].state == "waiting"


def test_person_who_may_only_look_can_do_nothing_to_runs(client_of, run):
    looker = get_user_model().objects.create_user("looker", is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_run"))
    client = client_of(looker)
    assert client.get("/admin/chat/run/").status_code == 200
    act(client, "stop", run)
    run.refresh_from_db()
    assert run.status == "queued"
