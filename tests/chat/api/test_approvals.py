"""Decisions over REST: the inbox, a word and its answers, rules, mode; who may and who may not."""

import json
from uuid import uuid4

import pytest
from django.test import RequestFactory
from django.utils import timezone
from rest_framework.request import Request

from accounts.models import DEFAULT_SCOPES
from accounts.services import token_create
from chat.api.completions import delivered
from chat.models import Approval, Run, ToolRule
from tests.chat.api.conftest import FakeRuntime, answer
from tools.exceptions import ToolError
from web.models import OwnerEvent

pytestmark = pytest.mark.django_db


def decide(client, approval, decision="approve", **word):
    return client.post(
        f"/api/approvals/{approval.id}/",
        {"decision": decision, **word},
        content_type="application/json",
    )


def bearer(user, *scopes):
    _, secret = token_create(owner=user, name="t", scopes=scopes or None)
    return {"HTTP_AUTHORIZATION": f"Bearer {secret}"}


def test_inbox_lists_what_waits_in_all_conversations_the_oldest_first(client_of, user, waiting):
    first, second = waiting("red", "blue"), waiting("green")
    found = client_of(user).get("/api/approvals/").json()
    assert found["count"] == 3
    assert [row["arguments"]["colour"] for row in found["results"]] == ["red", "blue", "green"]
    row = found["results"][0]
    assert row["preview"] == {"text": "Make it red.", "diff": "-white\n+red"}
    assert (row["run"], row["conversation"]) == (
        str(first.run.id),
        str(first.run.conversation_id),
    )
    assert (row["name"], row["status"], row["effect"]) == ("lamp_set", "pending", "external")
    decide(client_of(user), second.approvals[0])
    assert client_of(user).get("/api/approvals/").json()["count"] == 2


def test_decision_carries_the_run_on(client_of, user, waiting, lamp):
    paused = waiting()
    response = decide(client_of(user), paused.approvals[0])
    assert (response.status_code, response.json()["status"]) == (200, "approved")
    assert response.json()["by"] == "ada"
    assert paused.go_on().stop_reason == "end_turn"
    assert lamp.set == ["red"]
    [approval] = paused.approvals
    assert (approval.decided_by, approval.via) == (user, None)


def test_same_decision_twice_is_taken_and_another_is_closed(client_of, user, waiting):
    [approval] = waiting().approvals
    client = client_of(user)
    assert decide(client, approval).status_code == 200
    assert decide(client, approval).status_code == 200
    refused = decide(client, approval, "deny")
    assert refused.status_code == 409
    error = refused.json()["error"]
    assert (error["code"], error["approval"]["status"]) == ("approval_closed", "approved")


def test_rule_that_comes_too_late_is_not_taken_for_made(client_of, user, waiting):
    once, always = waiting("red", "blue").approvals
    client = client_of(user)
    assert decide(client, once).status_code == 200
    assert decide(client, once, scope="always").status_code == 409
    assert not ToolRule.objects.exists()
    assert decide(client, always, scope="always").status_code == 200
    assert decide(client, always).status_code == 200
    assert ToolRule.objects.count() == 1


def test_stale_decision_shows_what_would_happen_now(client_of, user, waiting, lamp):
    [approval] = waiting().approvals
    lamp.version = 2
    lamp.before = "grey"
    refused = decide(client_of(user), approval)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (409, "approval_stale")
    assert error["approval"]["preview"]["diff"] == "-grey\n+red"
    assert decide(client_of(user), approval).status_code == 200


def test_word_on_what_was_seen_holds_for_nothing_else(client_of, user, waiting, lamp):
    [approval] = waiting().approvals
    client = client_of(user)
    seen = client.get(f"/api/approvals/{approval.id}/").json()["digest"]
    lamp.version = 2
    assert decide(client, approval).status_code == 409
    assert decide(client, approval, digest=seen).json()["error"]["code"] == "approval_stale"
    seen = client.get(f"/api/approvals/{approval.id}/").json()["digest"]
    assert decide(client, approval, digest=seen).status_code == 200


def test_word_on_something_else_is_refused_where_nothing_changed(client_of, user, waiting):
    [approval] = waiting().approvals
    error = decide(client_of(user), approval, digest="0").json()["error"]
    assert error["code"] == "approval_stale"
    assert error["message"] == "This is not what was looked at. Look at it again."


def preview(client, approval, **body):
    path = f"/api/approvals/{approval.id}/preview/"
    return client.post(path, body, content_type="application/json")


def test_preview_shows_what_changed_arguments_would_do_and_changes_nothing(
    client_of, user, waiting, lamp
):
    paused = waiting()
    [approval] = paused.approvals
    before = (list(Approval.objects.values()), list(Run.objects.values()))
    events = OwnerEvent.objects.count()
    client = client_of(**bearer(user, "read"))
    shown = preview(client, approval, arguments={"colour": "pink"}).json()
    assert shown["arguments"] == {"colour": "pink"}
    assert shown["preview"] == {"text": "Make it pink.", "diff": "-white\n+pink"}
    assert (shown["effect"], bool(shown["because"])) == ("external", True)
    assert shown["digest"] not in ("", approval.digest)
    assert (list(Approval.objects.values()), list(Run.objects.values())) == before
    assert (OwnerEvent.objects.count(), lamp.set) == (events, [])


def test_approval_of_previewed_arguments_does_what_was_shown_or_is_stale(
    client_of, user, waiting, lamp
):
    paused = waiting()
    [approval] = paused.approvals
    client = client_of(user)
    pink = {"arguments": {"colour": "pink"}}
    seen = preview(client, approval, **pink).json()["digest"]
    other = decide(client, approval, arguments={"colour": "grey"}, digest=seen)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "approval_stale")
    lamp.version = 2
    assert decide(client, approval, **pink, digest=seen).status_code == 409
    seen = preview(client, approval, **pink).json()["digest"]
    assert decide(client, approval, **pink, digest=seen).status_code == 200
    assert paused.go_on().stop_reason == "end_turn"
    assert lamp.set == ["pink"]


def test_previewed_arguments_are_approved_where_the_shown_ones_are_out_of_date(
    client_of, user, waiting, lamp
):
    paused = waiting()
    [approval] = paused.approvals
    lamp.version = 2
    client = client_of(user)
    pink = {"arguments": {"colour": "pink"}}
    seen = preview(client, approval, **pink).json()["digest"]
    assert decide(client, approval, **pink, digest=seen).status_code == 200
    paused.go_on()
    assert lamp.set == ["pink"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "arguments"),
        ({"arguments": None}, "arguments"),
        ({"arguments": []}, "arguments"),
        ({"arguments": {}}, "arguments.colour"),
        ({"arguments": {"colour": ""}}, "arguments.colour"),
        ({"arguments": {"color": "red"}}, "arguments.color"),
        ({"arguments": {"colour": "red"}, "decision": "approve"}, "decision"),
    ],
)
def test_preview_of_arguments_that_do_not_fit_names_the_field(
    client_of, user, waiting, body, field
):
    [approval] = waiting().approvals
    response = preview(client_of(user), approval, **body)
    assert response.status_code == 400
    assert field in response.json()["error"]["fields"]


def test_preview_of_what_cannot_be_done_says_why(client_of, user, waiting, lamp):
    [approval] = waiting().approvals
    lamp.fault = ToolError("The lamp is broken.")
    response = preview(client_of(user), approval, arguments={"colour": "pink"})
    assert response.status_code == 400
    assert "broken" in response.json()["error"]["fields"]["arguments"][0]


def test_preview_of_what_is_no_longer_awaited_is_closed(client_of, user, waiting, lamp):
    red = {"arguments": {"colour": "red"}}
    client = client_of(user)
    [approval] = waiting().approvals
    decide(client, approval, "deny")
    closed = preview(client, approval, **red)
    assert (closed.status_code, closed.json()["error"]["code"]) == (409, "approval_closed")
    assert closed.json()["error"]["approval"]["status"] == "denied"
    [late] = waiting().approvals
    Approval.objects.filter(id=late.id).update(expires=timezone.now())
    assert preview(client, late, **red).json()["error"]["code"] == "approval_closed"


def test_preview_is_for_the_owner_alone(client_of, user, other_user, waiting):
    [approval] = waiting().approvals
    red = {"arguments": {"colour": "red"}}
    missing = preview(client_of(other_user), Approval(id=uuid4()), **red)
    refused = preview(client_of(other_user), approval, **red)
    assert (refused.status_code, refused.json()) == (404, missing.json())
    assert preview(client_of(), approval, **red).status_code == 401
    assert preview(client_of(**bearer(user, "approve")), approval, **red).status_code == 403


def test_approval_that_is_shown_anew_is_told_to_whoever_lists_them(client_of, user, waiting, lamp):
    [approval] = waiting().approvals
    lamp.version = 2
    for _ in range(2):
        decide(client_of(user), approval, digest="0")
    opened = OwnerEvent.objects.filter(kind="approval_opened", object_id=str(approval.id))
    assert opened.count() == 2


def test_denial_with_continue_lets_the_model_go_on(client_of, user, waiting, lamp):
    paused = waiting()
    word = {"reason": "too red", "continue": True}
    assert decide(client_of(user), paused.approvals[0], "deny", **word).status_code == 200
    assert paused.go_on().stop_reason == "end_turn"
    assert lamp.set == []


@pytest.mark.parametrize(
    ("word", "field"),
    [
        ({"decision": "perhaps"}, "decision"),
        ({"decision": None}, "decision"),
        ({"arguments": {"color": "red"}}, "arguments.color"),
        ({"arguments": {"colour": 7}}, "arguments.colour"),
        ({"arguments": []}, "arguments"),
        ({"scope": "forever"}, "scope"),
        ({"reason": 7}, "reason"),
        ({"reason": "x" * 2001}, "reason"),
        ({"continue": True}, "continue"),
        ({"decision": "deny", "scope": "always"}, "scope"),
        ({"decision": "deny", "arguments": {}}, "arguments"),
    ],
)
def test_word_that_is_none_is_refused_with_its_field(client_of, user, waiting, lamp, word, field):
    [approval] = waiting().approvals
    response = decide(client_of(user), approval, **{"decision": "approve", **word})
    assert response.status_code == 400
    assert field in response.json()["error"]["fields"]
    approval.refresh_from_db()
    assert approval.decision == ""


def test_scope_that_would_not_help_is_refused(client_of, user, waiting, settings):
    settings.NOTEWIRE_TOOL_POLICY = {"lamp_set": "ask"}
    [approval] = waiting().approvals
    assert approval.preview["scopes"] == ["once"]
    response = decide(client_of(user), approval, scope="always")
    assert (response.status_code, ToolRule.objects.count()) == (400, 0)


@pytest.mark.parametrize("scopes", [DEFAULT_SCOPES, ("read", "write", "chat", "admin"), ()])
def test_token_without_the_scope_decides_nothing(client_of, user, waiting, scopes):
    [approval] = waiting().approvals
    response = decide(client_of(**bearer(user, *scopes)), approval)
    assert response.status_code == 403
    approval.refresh_from_db()
    assert approval.decision == ""


def test_token_with_the_scope_decides_and_is_remembered(client_of, user, waiting):
    [approval] = waiting().approvals
    assert decide(client_of(**bearer(user, "approve")), approval).status_code == 200
    approval.refresh_from_db()
    assert approval.via is not None
    assert approval.via.name == "t"


def test_stranger_and_anonymous_see_and_decide_nothing(client_of, other_user, waiting):
    [approval] = waiting().approvals
    stranger = client_of(other_user)
    missing = decide(stranger, Approval(id=uuid4()))
    refused = decide(stranger, approval)
    assert (refused.status_code, refused.json()) == (404, missing.json())
    assert stranger.get(f"/api/approvals/{approval.id}/").status_code == 404
    assert stranger.get("/api/approvals/").json()["count"] == 0
    assert decide(client_of(), approval).status_code == 401
    assert client_of().get("/api/approvals/").status_code == 401
    approval.refresh_from_db()
    assert approval.decision == ""


def test_rules_are_listed_and_taken_back(client_of, user, other_user, waiting):
    paused = waiting()
    decide(client_of(user), paused.approvals[0], scope="conversation")
    client = client_of(user)
    [rule] = client.get("/api/tool-rules/").json()["results"]
    assert (rule["tool"], rule["decision"], rule["holds"]) == ("lamp_set", "allow", True)
    assert rule["conversation"] == str(paused.run.conversation_id)
    path = f"/api/tool-rules/{rule['id']}/"
    assert client_of(other_user).get("/api/tool-rules/").json()["results"] == []
    assert client_of(other_user).delete(path).status_code == 404
    assert client_of().delete(path).status_code == 401
    assert client_of().get("/api/tool-rules/").status_code == 401
    assert client_of(**bearer(user)).delete(path).status_code == 403
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404


def test_mode_is_chosen_and_told(client_of, user, other_user, settings):
    client = client_of(user)

    def put(client, mode):
        return client.put("/api/approval-mode/", {"mode": mode}, content_type="application/json")

    assert client.get("/api/approval-mode/").json() == {"mode": "balanced", "by_operator": False}
    assert put(client, "careful").json()["mode"] == "careful"
    tools = client.get("/api/tools/").json()["results"]
    decided = {row["name"]: row["policy"] for row in tools}
    assert (decided["note_update"], decided["note_read"]) == ("ask", "allow")
    assert client_of(other_user).get("/api/approval-mode/").json()["mode"] == "balanced"
    assert put(client, "reckless").status_code == 400
    assert put(client_of(), "careful").status_code == 401
    assert put(client_of(**bearer(user)), "careful").status_code == 403
    settings.NOTEWIRE_APPROVAL_MODE = "careful"
    told = client_of(other_user).get("/api/approval-mode/").json()
    assert told == {"mode": "careful", "by_operator": True}
    assert put(client_of(other_user), "careful").status_code == 200
    refused = put(client_of(other_user), "balanced")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "approval_mode_fixed")


def test_body_of_a_completion_says_what_waits(client_of, user, waiting, units):
    paused = waiting("red", "blue")
    request = Request(RequestFactory().post("/"))
    response = delivered(request, Run.objects.get(id=paused.run.id), stream=False)
    status, body, _ = answer(response, FakeRuntime(None))
    told = json.loads(body)
    assert (status, told["status"], told["run"]) == (202, "awaiting_approval", str(paused.run.id))
    assert [row["id"] for row in told["approvals"]] == [str(a.id) for a in paused.approvals]
