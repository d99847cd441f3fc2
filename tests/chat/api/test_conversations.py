import json
from uuid import uuid4

import pytest

from accounts.services import token_create
from chat.models import Conversation, Message, MessageRole, ToolCall, ToolCallStatus
from web.models import OwnerEvent

pytestmark = pytest.mark.django_db

ALL = "/api/conversations/"


def path(conversation, tail="") -> str:
    return f"{ALL}{conversation.id}/{tail}"


def send(method, where, body):
    return method(where, json.dumps(body), content_type="application/json")


def titles(client, query="") -> list[str]:
    return [row["title"] for row in client.get(ALL + query).json()["results"]]


def test_conversation_is_made_with_what_was_sent(client_of, user):
    body = {"title": " Trip ", "model": "local/m", "system_prompt": "Be brief.\n", "archived": True}
    response = send(client_of(user).post, ALL, body)
    assert response.status_code == 201
    data = response.json()
    assert {key: data[key] for key in body} == body
    assert data["active_run"] is None
    assert response["Location"].endswith(path(Conversation(id=data["id"])))
    made = Conversation.objects.get(id=data["id"])
    assert (made.owner, made.title) == (user, " Trip ")


def test_conversation_needs_nothing_to_be_made(client_of, user):
    assert send(client_of(user).post, ALL, {}).status_code == 201


def test_list_holds_ones_own_conversations_the_last_active_first(client_of, user, other_user):
    for owner, title in [(user, "a"), (other_user, "theirs"), (user, "b")]:
        Conversation.objects.create(owner=owner, title=title)
    response = client_of(user).get(ALL).json()
    assert [row["title"] for row in response["results"]] == ["b", "a"]
    assert response["count"] == 2
    assert (response["next"], response["previous"]) == (None, None)


def test_list_leaves_archived_and_ephemeral_ones_out(client_of, user):
    Conversation.objects.create(owner=user, title="old", archived=True)
    Conversation.objects.create(owner=user, title="api", ephemeral=True)
    Conversation.objects.create(owner=user, title="new")
    client = client_of(user)
    assert titles(client) == ["new"]
    assert titles(client, "?archived=true") == ["old"]
    assert titles(client, "?archived=all") == ["new", "old"]
    wrong = client.get(ALL + "?archived=perhaps")
    assert (wrong.status_code, list(wrong.json()["error"]["fields"])) == (400, ["archived"])


def test_list_comes_in_pages(client_of, user):
    for number in range(3):
        Conversation.objects.create(owner=user, title=str(number))
    client = client_of(user)
    first = client.get(ALL + "?limit=2").json()
    second = client.get(first["next"]).json()
    assert [row["title"] for row in first["results"] + second["results"]] == ["2", "1", "0"]
    assert second["next"] is None


def test_queries_of_the_list_do_not_grow_with_its_rows(
    client_of, user, run, django_assert_max_num_queries
):
    client = client_of(user)
    for number in range(30):
        Conversation.objects.create(owner=user, title=str(number))
    with django_assert_max_num_queries(6):
        assert len(client.get(ALL).json()["results"]) == 31


def test_conversation_is_shown_with_its_active_run(client_of, user, run):
    data = client_of(user).get(path(run.conversation)).json()
    assert data["active_run"]["id"] == str(run.id)
    assert data["active_run"]["status"] == "queued"


def test_change_concerns_only_what_is_sent(client_of, user, conversation):
    before = conversation.updated
    response = send(client_of(user).patch, path(conversation), {"archived": True})
    assert response.status_code == 200
    assert (response.json()["archived"], response.json()["title"]) == (True, "Groceries")
    conversation.refresh_from_db()
    assert conversation.archived
    assert conversation.updated == before


def test_change_of_nothing_shows_the_conversation(client_of, user, conversation):
    assert send(client_of(user).patch, path(conversation), {}).json()["title"] == "Groceries"


def test_change_to_what_is_there_already_is_told_to_nobody(client_of, user, conversation):
    client = client_of(user)
    for body in ({}, {"title": "Groceries"}, {"title": "Groceries", "archived": False}):
        assert send(client.patch, path(conversation), body).status_code == 200
    assert not OwnerEvent.objects.filter(kind="conversation_changed").exists()

    body = {"title": "Groceries", "archived": True}
    assert send(client.patch, path(conversation), body).json()["archived"]
    assert OwnerEvent.objects.filter(kind="conversation_changed").count() == 1


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"title": "x" * 501}, "title", "invalid"),
        ({"title": 5}, "title", "invalid"),
        ({"model": "x" * 301}, "model", "invalid"),
        ({"archived": "perhaps"}, "archived", "invalid"),
        ({"system_prompt": "ä" * 32_769}, "system_prompt", "invalid"),
        ({"title": "a\0"}, "title", "null_character"),
    ],
)
def test_bad_values_are_refused_with_their_field(client_of, user, conversation, body, field, code):
    client = client_of(user)
    for response in (send(client.patch, path(conversation), body), send(client.post, ALL, body)):
        assert response.status_code == 400
        assert response.json()["error"]["code"] == code
        assert list(response.json()["error"]["fields"]) == [field]
    assert Conversation.objects.get().title == "Groceries"


def test_delete_is_for_good(client_of, user, conversation):
    client = client_of(user)
    assert client.delete(path(conversation)).status_code == 204
    assert client.get(path(conversation)).status_code == 404
    assert client.delete(path(conversation)).status_code == 404


def test_messages_are_those_of_the_branch_shown_with_calls_and_results(
    client_of, user, conversation
):
    asked = Message.objects.create(
        conversation=conversation, role=MessageRole.USER, content="Make a note."
    )
    other = Message.objects.create(
        conversation=conversation, parent=asked, role=MessageRole.ASSISTANT, content="not shown"
    )
    called = Message.objects.create(
        conversation=conversation,
        parent=asked,
        role=MessageRole.ASSISTANT,
        finish_reason="tool_use",
        fresh_input_tokens=5,
        cache_read_tokens=0,
        cache_write_tokens=0,
        output_tokens=2,
        usage_is="reported",
    )
    for position, call_id in enumerate(["call_b", "call_a"]):
        ToolCall.objects.create(
            owner=user,
            conversation=conversation,
            message=called,
            position=position,
            call_id=call_id,
            name="note_create",
            arguments='{"title": "A"}',
            status=ToolCallStatus.DONE,
            result="made",
            extra={
                "summary": "Made A",
                "duration_ms": 3,
                "touched": [{"kind": "note", "id": "1", "title": "A"}],
            },
        )
    conversation.leaf = called
    conversation.save()
    data = client_of(user).get(path(conversation, "messages/")).json()
    assert [row["id"] for row in data["results"]] == [str(asked.id), str(called.id)]
    assert str(other.id) not in json.dumps(data)
    shown = data["results"][1]
    assert shown["usage"] == {"fresh_input": 5, "cache_read": 0, "cache_write": 0, "output": 2}
    assert [call["call_id"] for call in shown["tool_calls"]] == ["call_b", "call_a"]
    first = shown["tool_calls"][0]
    assert (first["name"], first["result"], first["status"]) == ("note_create", "made", "done")
    assert (first["summary"], first["duration_ms"]) == ("Made A", 3)
    assert first["touched"] == [{"kind": "note", "id": "1", "title": "A"}]
    assert data["results"][0]["usage"] is None


def test_messages_of_an_empty_conversation_are_an_empty_page(client_of, user, conversation):
    data = client_of(user).get(path(conversation, "messages/")).json()
    assert (data["count"], data["results"]) == (0, [])


@pytest.mark.parametrize(
    ("method", "tail"), [("get", ""), ("patch", ""), ("delete", ""), ("get", "messages/")]
)
def test_conversation_of_a_stranger_is_not_found(client_of, other_user, conversation, method, tail):
    ask = getattr(client_of(other_user), method)
    response, missing = ask(path(conversation, tail)), ask(path(Conversation(id=uuid4()), tail))
    assert (response.status_code, missing.status_code) == (404, 404)
    assert response.json() == missing.json()
    assert Conversation.objects.get().title == "Groceries"


@pytest.mark.parametrize(
    ("method", "tail"), [("get", ""), ("patch", ""), ("delete", ""), ("get", "messages/")]
)
def test_conversation_needs_somebody(client_of, conversation, method, tail):
    assert getattr(client_of(), method)(path(conversation, tail)).status_code == 401
    assert client_of().get(ALL).status_code == 401
    assert send(client_of().post, ALL, {}).status_code == 401
    assert Conversation.objects.count() == 1


def test_token_to_read_may_read_and_no_more(client_of, user, conversation):
    _, secret = token_create(owner=user, name="script", scopes=["read"])
    client = client_of(headers={"authorization": f"Bearer {secret}"})
    assert client.get(path(conversation)).status_code == 200
    assert send(client.patch, path(conversation), {"title": "x"}).status_code == 403
    assert client.delete(path(conversation)).status_code == 403
    assert send(client.post, ALL, {}).status_code == 403
