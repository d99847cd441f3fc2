import pytest
from django.contrib.auth import get_user_model

from chat.models import Conversation, Message, MessageRole
from chat.runs.lifecycle import run_start

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
