import json
from uuid import uuid4

import pytest

from accounts.services import token_create
from chat.events import RunStarted, TextDelta
from chat.models import Run, RunStatus
from chat.runs.lifecycle import run_close
from tests.chat.api.conftest import FakeRuntime, logged, raw, sent, store
from tests.chat.wire.samples import FIRST, STORY
from web.streams import EventStreamResponse

pytestmark = pytest.mark.django_db

LAST = f"1-{len(STORY)}"


def path(run, tail="") -> str:
    return f"/api/runs/{run.id}/{tail}"


def events(client, run, **options):
    return client.get(path(run, "events/"), **options)


def test_run_is_shown_to_its_owner(client_of, user, run):
    response = client_of(user).get(path(run))
    assert response.status_code == 200
    data = response.json()
    assert data["id"] == str(run.id)
    assert (data["conversation"], data["message"]) == (
        str(run.conversation_id),
        str(run.message_id),
    )
    assert (data["status"], data["stop_reason"], data["error"]) == ("queued", "", None)


def test_failed_run_says_why(client_of, user, run):
    Run.objects.filter(id=run.id).update(
        error_code="provider_error", error_message="overloaded", error_provider="p"
    )
    assert client_of(user).get(path(run)).json()["error"] == {
        "code": "provider_error",
        "message": "overloaded",
        "provider": "p",
        "status": None,
        "retryable": False,
    }


@pytest.mark.parametrize("tail", ["", "events/", "stop/"])
def test_run_of_a_stranger_is_not_found(client_of, other_user, run, tail):
    client, method = client_of(other_user), "POST" if tail == "stop/" else "GET"
    missing = client.generic(method, path(Run(id=uuid4()), tail))
    response = client.generic(method, path(run, tail))
    assert (response.status_code, missing.status_code) == (404, 404)
    assert response.json() == missing.json()
    run.refresh_from_db()
    assert run.stop_requested is None


@pytest.mark.parametrize("tail", ["", "events/", "stop/"])
def test_run_needs_somebody(client_of, run, tail):
    client = client_of()
    ask = client.post if tail == "stop/" else client.get
    assert ask(path(run, tail)).status_code == 401


def test_events_follow_a_run_live_until_done(client_of, user, run, units):
    response = events(client_of(user), run)
    assert isinstance(response, EventStreamResponse)
    parsed = sent(response, FakeRuntime(logged(run, *STORY[:5]), None, logged(run, *STORY)[5:]))
    assert [event.name for event in parsed] == [event.name for event in STORY]
    assert parsed[-1].id == LAST


def test_events_replay_a_finished_run(client_of, user, run, units):
    store(run, *STORY)
    parsed = sent(events(client_of(user), run), FakeRuntime())
    assert [event.name for event in parsed] == [event.name for event in STORY]


def test_events_come_as_lines_of_json_and_resume_after_one(client_of, user, run, units):
    store(run, *STORY)
    headers = {"accept": "application/x-ndjson"}
    whole = raw(events(client_of(user), run, headers=headers), FakeRuntime()).splitlines()
    assert json.loads(whole[-1])["type"] == "DONE"
    after = json.loads(whole[3])["event"]
    rest = events(client_of(user), run, headers=headers, data={"after": after})
    assert raw(rest, FakeRuntime()).splitlines() == whole[4:]


@pytest.mark.parametrize("header", [True, False])
def test_events_resume_strictly_after_the_last_one_seen(client_of, user, run, units, header):
    store(run, *STORY)
    options = {"headers": {"last-event-id": "1-5"}} if header else {"data": {"after": "1-5"}}
    parsed = sent(events(client_of(user), run, **options), FakeRuntime())
    assert [event.id for event in parsed] == [f"1-{seq}" for seq in range(6, len(STORY) + 1)]


def test_header_goes_before_the_query(client_of, user, run, units):
    store(run, *STORY)
    options = {"headers": {"last-event-id": "1-9"}, "data": {"after": "1-2"}}
    assert sent(events(client_of(user), run, **options), FakeRuntime())[0].id == "1-10"


@pytest.mark.parametrize("point", ["9-1", "1-999", "0-1", "nonsense", "1", "1-2-3", "١-٢"])
def test_unknown_resume_point_gets_a_snapshot_then_the_rest(client_of, user, run, units, point):
    store(run, *STORY)
    parsed = sent(events(client_of(user), run, data={"after": point}), FakeRuntime())
    assert [event.name for event in parsed] == ["snapshot", "done"]
    snapshot = parsed[0].json
    assert snapshot["covers"] == parsed[0].id == f"1-{len(STORY) - 1}"
    texts = [message["text"] for message in snapshot["state"]["messages"]]
    assert texts == ["Making it.", "Made it."]
    assert snapshot["state"]["messages"][0]["calls"][0]["result"] == '{"id": "1"}'


def test_resume_point_of_an_older_attempt_gets_a_snapshot(client_of, user, run, units):
    store(run, *STORY[:4])
    started = STORY[0]
    assert isinstance(started, RunStarted)
    store(run, started, TextDelta(message_id=FIRST, text="Anew."), attempt=2)
    runtime = FakeRuntime(logged(run, *STORY[:2], STORY[-1], attempt=2)[2:])
    parsed = sent(events(client_of(user), run, data={"after": "1-3"}), runtime)
    assert [event.name for event in parsed] == ["snapshot", "done"]
    assert parsed[0].id == "2-2"
    assert [m["text"] for m in parsed[0].json["state"]["messages"]] == ["Anew."]
    assert runtime.asked == [(2, 2)]


def test_resume_of_a_run_without_events_starts_at_the_beginning(client_of, user, run, units):
    runtime = FakeRuntime(logged(run, *STORY))
    parsed = sent(events(client_of(user), run, data={"after": "1-3"}), runtime)
    assert [event.name for event in parsed] == [event.name for event in STORY]


def test_events_after_done_are_no_content_so_that_a_browser_stops_asking(client_of, user, run):
    store(run, *STORY)
    assert events(client_of(user), run, headers={"last-event-id": LAST}).status_code == 204
    assert events(client_of(user), run, headers={"last-event-id": "1-4"}).status_code == 200


def test_events_after_the_last_one_of_a_running_run_wait_for_more(client_of, user, run):
    store(run, *STORY[:4])
    assert events(client_of(user), run, headers={"last-event-id": "1-4"}).status_code == 200


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json", "nonsense"])
def test_events_never_fail_on_what_the_client_accepts(client_of, user, run, accept):
    assert events(client_of(user), run, headers={"accept": accept}).status_code == 200
    missing = events(client_of(user), Run(id=uuid4()), headers={"accept": accept})
    assert (missing.status_code, missing["Content-Type"]) == (404, "application/json")


@pytest.mark.parametrize(
    ("site", "status"),
    [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)],
)
def test_events_by_cookie_are_for_pages_of_this_site(client_of, user, run, site, status):
    assert events(client_of(user), run, headers={"sec-fetch-site": site}).status_code == status


def test_events_by_token_are_for_programs_anywhere(client_of, user, run):
    _, secret = token_create(owner=user, name="script", scopes=["read"])
    headers = {"authorization": f"Bearer {secret}", "sec-fetch-site": "cross-site"}
    assert events(client_of(), run, headers=headers).status_code == 200


def test_stop_ends_a_run_that_nobody_executes_at_once(client_of, user, run):
    response = client_of(user).post(path(run, "stop/"), content_type="application/json")
    assert response.status_code == 200
    data = response.json()
    assert (data["status"], data["stop_reason"]) == ("finished", "stopped")
    assert data["already_finished"] is False
    assert data["stop_requested"]
    again = client_of(user).post(path(run, "stop/"), content_type="application/json").json()
    assert (again["already_finished"], again["stop_reason"]) == (True, "stopped")


def test_stop_of_a_finished_run_says_so(client_of, user, run):
    run_close(run_id=run.id, reason="end_turn")
    response = client_of(user).post(path(run, "stop/"), content_type="application/json")
    assert response.status_code == 200
    data = response.json()
    assert (data["already_finished"], data["stop_reason"]) == (True, "end_turn")
    assert Run.objects.get().status == RunStatus.FINISHED


def test_stop_by_token_needs_the_scope_chat(client_of, user, run):
    _, secret = token_create(owner=user, name="script", scopes=["read", "write"])
    headers = {"authorization": f"Bearer {secret}"}
    assert client_of().post(path(run, "stop/"), headers=headers).status_code == 403
    assert Run.objects.get().status == RunStatus.QUEUED
