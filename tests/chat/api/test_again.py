import json
from uuid import uuid4

import pytest

from chat.models import Run
from chat.runs.lifecycle import run_close, run_start
from web.streams import DeferredResponse, EventStreamResponse

pytestmark = pytest.mark.django_db
AGAIN = pytest.mark.parametrize("kind", ["continue", "retry"])


def post(client, run_id, kind, body=None):
    return client.post(
        f"/api/runs/{run_id}/{kind}/", json.dumps(body or {}), content_type="application/json"
    )


@pytest.fixture
def ended(user):
    run = run_start(owner=user, content="hello")
    run_close(run_id=run.id, reason="stopped")
    return run


@AGAIN
def test_again_starts_a_run_on_the_same_message_and_streams_it(client_of, user, ended, kind):
    response = post(client_of(user), ended.id, kind)

    assert isinstance(response, EventStreamResponse)
    run = Run.objects.get(id=response["X-Run-Id"])
    assert (run.message_id, run.status) == (ended.message_id, "queued")
    assert run.id != ended.id


@AGAIN
def test_again_answers_with_one_body_on_request(client_of, user, ended, kind):
    response = post(client_of(user), ended.id, kind, {"stream": False, "model": "demo"})

    assert isinstance(response, DeferredResponse)
    assert Run.objects.get(id=response["X-Run-Id"]).model == "demo"


@AGAIN
def test_again_of_an_active_run_is_refused_with_its_id(client_of, user, kind):
    run = run_start(owner=user, content="hello")
    response = post(client_of(user), run.id, kind)

    assert response.status_code == 409
    assert response.json()["error"]["run"] == str(run.id)


@AGAIN
def test_again_is_not_for_strangers_or_nobody(client_of, other_user, ended, kind):
    stranger = post(client_of(other_user), ended.id, kind)
    missing = post(client_of(other_user), uuid4(), kind)

    assert stranger.status_code == missing.status_code == 404
    assert stranger.json() == missing.json()
    assert post(client_of(), ended.id, kind).status_code == 401
    assert Run.objects.count() == 1
