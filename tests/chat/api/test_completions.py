import json
from uuid import UUID, uuid4

import pytest

from accounts.services import token_create
from chat.events import Done, ErrorOccurred
from chat.models import Conversation, Message, Run
from tests.chat.api.conftest import FakeRuntime, answer, logged, raw, sent
from tests.chat.wire.samples import STORY
from web.streams import DeferredResponse, EventStreamResponse

pytestmark = pytest.mark.django_db

ALL = "/api/completions/"


def path(conversation) -> str:
    return f"/api/conversations/{conversation.id}/completions/"


def post(client, where, body, **headers):
    return client.post(where, json.dumps(body), content_type="application/json", headers=headers)


def started(response) -> Run:
    return Run.objects.get(id=response["X-Run-Id"])


def test_completion_makes_a_conversation_and_streams_its_first_run(client_of, user, units):
    response = post(client_of(user), ALL, {"content": "Make a note."})
    assert isinstance(response, EventStreamResponse)
    run = started(response)
    assert run.owner == user
    assert response["X-Conversation-Id"] == str(run.conversation_id)
    assert Message.objects.get().content == "Make a note."
    runtime = FakeRuntime(logged(run, *STORY))
    names = [event.name for event in sent(response, runtime)]
    assert names[0] == "run_started"
    assert names[-3:] == ["message", "done", "message"]
    assert (runtime.asked, runtime.closed) == ([None], 1)


def test_completion_goes_on_in_a_conversation(client_of, user, conversation):
    response = post(client_of(user), path(conversation), {"content": "And find it."})
    run = started(response)
    assert run.conversation == conversation
    assert run.message.content == "And find it."


def test_completion_keeps_the_message_exactly_and_the_model_asked_for(client_of, user):
    content = "  spaces, \u2028 and\r\nlines \n"
    response = post(client_of(user), ALL, {"content": content, "model": "local/m"})
    run = started(response)
    assert (run.message.content, run.model) == (content, "local/m")


def test_completion_comes_as_lines_of_json_where_they_are_preferred(client_of, user, units):
    accept = "application/x-ndjson, text/event-stream;q=0.5"
    response = post(client_of(user), ALL, {"content": "Hi"}, Accept=accept)
    assert response["Content-Type"] == "application/x-ndjson; charset=utf-8"
    assert response.content == b"\n"
    assert json.loads(response.failure)["type"] == "ERROR"
    run = started(response)
    said = raw(response, FakeRuntime(None, logged(run, *STORY))).split(b"\n")
    told = [json.loads(line)["type"] for line in said if line]
    assert said[0] == b""
    assert (told[0], told[-1]) == ("THINKING", "DONE")


@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/event-stream, */*", "x"])
def test_completion_streams_events_where_lines_are_not_preferred(client_of, user, accept):
    response = post(client_of(user), ALL, {"content": "Hi"}, Accept=accept)
    assert response["Content-Type"].startswith("text/event-stream")


def test_error_is_json_where_lines_were_asked_for(client_of, user):
    response = post(client_of(user), ALL, {"content": ""}, Accept="application/x-ndjson")
    assert (response.status_code, response["Content-Type"]) == (400, "application/json")
    assert response.json()["error"]["code"] == "invalid"


def test_stream_sends_keep_alives_while_nothing_happens(client_of, user, units):
    response = post(client_of(user), ALL, {"content": "Hi"})
    run = started(response)
    runtime = FakeRuntime(None, logged(run, *STORY))
    assert raw(response, runtime).startswith(b": keep-alive\n\n")


def test_stream_of_a_run_that_was_deleted_ends_as_every_other(client_of, user, units):
    response = post(client_of(user), ALL, {"content": "Hi"})
    runtime = FakeRuntime(None)
    said = raw(response, runtime)
    assert said.startswith(b": keep-alive\n\n")
    assert b'event: done\nid: 0-1\ndata: {"reason":"stopped"' in said
    assert said.endswith(b"data: [DONE]\n\n")
    assert runtime.closed == 1


def test_answer_without_stream_is_one_body(client_of, user, units):
    response = post(client_of(user), ALL, {"content": "Hi", "stream": False})
    assert isinstance(response, DeferredResponse)
    run = started(response)
    status, body, _ = answer(response, FakeRuntime(None, logged(run, *STORY)))
    data = json.loads(body)
    assert (status, data["object"]) == (200, "chat.completion")
    assert data["choices"][0]["message"]["content"] == "Making it.\n\nMade it."
    assert data["run_id"] == str(run.id)
    assert data["conversation_id"] == str(run.conversation_id)


def test_answer_without_stream_that_cannot_be_given_names_the_run_that_goes_on(client_of, user):
    response = post(client_of(user), ALL, {"content": "Hi", "stream": False})
    assert isinstance(response, DeferredResponse)
    run = started(response)
    assert json.loads(response.begun) == {"run": str(run.id), "status": "running"}


@pytest.mark.parametrize(
    ("code", "status"),
    [("no_provider", 503), ("model_unknown", 400), ("provider_error", 502), ("internal", 500)],
)
def test_answer_without_stream_of_a_failed_run_is_the_error_envelope(
    client_of, user, units, code, status
):
    response = post(client_of(user), ALL, {"content": "Hi", "stream": False})
    run = started(response)
    failed = ErrorOccurred(code=code, message="It failed.", provider="p", status=529)
    runtime = FakeRuntime(logged(run, failed, Done(reason="error", run_id=run.id)))
    found, body, _ = answer(response, runtime)
    assert found == status
    assert json.loads(body)["error"] == {
        "code": code,
        "message": "It failed.",
        "fields": {},
        "run": str(run.id),
        "conversation": str(run.conversation_id),
        "provider": "p",
        "upstream_status": 529,
        "retryable": False,
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": ""}, "content"),
        ({"content": " \n"}, "content"),
        ({"content": 5}, "content"),
        ({"content": None}, "content"),
        ({"content": "x", "model": 5}, "model"),
        ({"content": "x", "model": "m" * 301}, "model"),
        ({"content": "x", "stream": "perhaps"}, "stream"),
    ],
)
def test_completion_says_which_field_is_wrong_and_stores_nothing(client_of, user, body, field):
    response = post(client_of(user), ALL, body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid"
    assert list(response.json()["error"]["fields"]) == [field]
    assert not Conversation.objects.exists()


def test_completion_refuses_nul_with_the_field(client_of, user):
    response = post(client_of(user), ALL, {"content": "a\0b"})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "null_character"
    assert "content" in response.json()["error"]["fields"]


def test_completion_refuses_a_message_of_more_than_200_000_bytes(client_of, user):
    fits = post(client_of(user), ALL, {"content": "ä" * 100_000})
    assert fits.status_code == 200
    response = post(client_of(user), ALL, {"content": "ä" * 100_000 + "x"})
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "message_too_large"
    assert Conversation.objects.count() == 1


def test_second_message_gets_the_active_runs_id(client_of, user, run):
    response = post(client_of(user), path(run.conversation), {"content": "And?"})
    assert response.status_code == 409
    assert response.json()["error"]["code"] == "conversation_busy"
    assert response.json()["error"]["run"] == str(run.id)
    assert Message.objects.count() == 1


@pytest.mark.parametrize("accept", ["text/event-stream", "application/xml", "*/*", "nonsense"])
def test_errors_are_json_whatever_the_client_accepts(client_of, user, accept):
    client = client_of(user)
    wrong = post(client, ALL, {}, accept=accept)
    assert (wrong.status_code, wrong["Content-Type"]) == (400, "application/json")
    right = post(client, ALL, {"content": "Hi"}, accept=accept)
    assert (right.status_code, right["Content-Type"][:17]) == (200, "text/event-stream")


def test_completion_of_a_strangers_conversation_is_not_found(client_of, other_user, conversation):
    response = post(client_of(other_user), path(conversation), {"content": "Hi"})
    missing = post(client_of(other_user), path(Conversation(id=uuid4())), {"content": "Hi"})
    assert (response.status_code, missing.status_code) == (404, 404)
    assert response.json() == missing.json()
    assert not Message.objects.exists()


def test_completion_needs_somebody(client_of, conversation):
    for where in (ALL, path(conversation)):
        response = post(client_of(), where, {"content": "Hi"})
        assert response.status_code == 401
        assert response.json()["error"]["code"] == "not_authenticated"
    assert not Message.objects.exists()


def test_completion_by_session_needs_the_csrf_token(client_of, user):
    response = post(client_of(user, enforce_csrf_checks=True), ALL, {"content": "Hi"})
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "csrf_failed"


@pytest.mark.parametrize(("scopes", "status"), [(["chat"], 200), (["read", "write"], 403)])
def test_completion_by_token_needs_the_scope_chat(client_of, user, scopes, status):
    _, secret = token_create(owner=user, name="script", scopes=scopes)
    response = post(client_of(), ALL, {"content": "Hi"}, authorization=f"Bearer {secret}")
    assert response.status_code == status
    assert Run.objects.exists() == (status == 200)


def test_run_id_in_the_header_is_the_runs(client_of, user):
    response = post(client_of(user), ALL, {"content": "Hi"})
    assert UUID(response["X-Run-Id"]) == Run.objects.get().id
