"""Deciding on pages: the card in its conversation, the inbox, the badge; for the owner alone."""

import re

import pytest
from django.urls import reverse

from chat.models import ToolRule
from chat.runs import event_log
from chat.wire.html import HtmlStream
from tests.chat.wire.page import MiniPage
from tests.chat.wire.parser import parse

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}


def page_of(response) -> str:
    assert response.status_code == 200, response.status_code
    return str(response.content.decode())


def conversation(run) -> str:
    return reverse("chat:conversation", args=[run.conversation_id])


def decide(client, approval, decision="approve", *, headers=JSON, **fields):
    url = reverse("chat:approval", args=[approval.id])
    return client.post(url, {"decision": decision, **fields}, headers=headers)


def section(html: str, run) -> str:
    return MiniPage(html).inner(f"run-{run.id}")


def bare(html: str) -> str:
    html = re.sub(r'<input type="hidden" name="csrfmiddlewaretoken"[^>]*>', "", html)
    return re.sub(r">\s+<", "><", html.strip())


def streamed(run) -> str:
    """The page as it is after the run's events, sent one by one."""
    page = MiniPage(f'<section id="run-{run.id}"></section>')
    stream = HtmlStream(run.id)
    for logged in event_log.events_after(run_id=run.id, position=(0, 0)):
        for event in parse(stream.encode([logged])):
            page.apply(event.name, event.json)
    return page.inner(f"run-{run.id}")


def test_card_is_on_the_page_and_equal_to_the_streamed_one_at_every_stage(client_of, user, waiting):
    paused = waiting("red", "blue")
    client = client_of(user)
    first, second = paused.approvals
    for stage in ("asked", "approved", "denied", "over"):
        if stage == "approved":
            decide(client, first)
        elif stage == "denied":
            decide(client, second, "deny", reason="no <b>", **{"continue": "1"})
        elif stage == "over":
            paused.go_on()
        page = section(page_of(client.get(conversation(paused.run))), paused.run)
        assert bare(page) == bare(streamed(paused.run)), stage
        assert page.count("data-approval") == {"asked": 2, "approved": 1}.get(stage, 0)
        assert ("data-awaiting" in page) == (stage in ("asked", "approved"))


def test_deciding_with_a_script_answers_the_card_as_it_is_then(client_of, user, waiting, lamp):
    paused = waiting()
    [approval] = paused.approvals
    response = decide(client_of(user), approval)
    assert "Approved by ada" in response.json()["html"]
    assert paused.go_on().stop_reason == "end_turn"
    assert lamp.set == ["red"]


def test_late_click_shows_the_final_state(client_of, user, waiting):
    [approval] = waiting().approvals
    client = client_of(user)
    decide(client, approval, "deny", reason="not now")
    late = decide(client, approval)
    assert late.status_code == 409
    error = late.json()["error"]
    assert error["code"] == "approval_closed"
    assert "Denied by ada: not now" in error["html"]
    assert "<button" not in error["html"]


def test_stale_card_is_shown_anew(client_of, user, waiting, lamp):
    [approval] = waiting().approvals
    lamp.version, lamp.before = 2, "grey"
    stale = decide(client_of(user), approval)
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "approval_stale")
    assert "-grey" in stale.json()["error"]["html"]
    assert "<button" in stale.json()["error"]["html"]


@pytest.mark.parametrize("scope", ["conversation", "always"])
def test_card_makes_a_rule(client_of, user, waiting, scope):
    paused = waiting()
    decide(client_of(user), paused.approvals[0], f"approve-{scope}")
    rule = ToolRule.objects.get()
    assert (rule.conversation is not None) == (scope == "conversation")


def test_deciding_without_a_script_leads_back_to_where_it_was(client_of, user, waiting):
    paused = waiting("red", "blue")
    first, second = paused.approvals
    client = client_of(user)
    html = {"Accept": "text/html"}
    response = decide(client, first, headers=html)
    assert (response.status_code, response["Location"]) == (302, conversation(paused.run))
    response = decide(client, second, "deny", headers=html, inbox="1")
    assert response["Location"] == reverse("chat:approvals")
    late = decide(client, second, headers=html, inbox="1")
    assert "This was already decided: denied." in page_of(client.get(late["Location"]))


def test_word_that_is_none_decides_nothing(client_of, user, waiting):
    [approval] = waiting().approvals
    client = client_of(user)
    assert decide(client, approval, "perhaps").status_code == 400
    assert decide(client, approval, "deny", reason="a\0").status_code == 400
    assert decide(client, approval, "deny", reason="x" * 2001).status_code == 400
    approval.refresh_from_db()
    assert approval.decision == ""


def test_inbox_and_badge_show_what_waits_everywhere(client_of, user, waiting):
    client = client_of(user)
    assert "Nothing waits for your word." in page_of(client.get("/approvals/"))
    assert "approvals-badge" not in page_of(client.get("/notes/"))
    paused, other = waiting("red", "blue"), waiting("green")
    page = page_of(client.get("/approvals/"))
    places = [page.index(f"Make it {colour}.") for colour in ("red", "blue", "green")]
    assert places == sorted(places)
    assert conversation(other.run) in page
    assert 'id="approvals-badge">3<' in page_of(client.get("/notes/"))
    decide(client, paused.approvals[0])
    assert 'id="approvals-badge">2<' in page_of(client.get("/"))


def test_waiting_page_does_not_reload_itself_under_the_persons_hands(client_of, user, waiting):
    paused = waiting()
    assert 'http-equiv="refresh"' not in page_of(client_of(user).get(conversation(paused.run)))


def test_stranger_and_anonymous_see_and_decide_nothing(client_of, other_user, waiting):
    [approval] = waiting().approvals
    stranger = client_of(other_user)
    assert decide(stranger, approval).status_code == 404
    assert "Make it red." not in page_of(stranger.get("/approvals/"))
    assert "approvals-badge" not in page_of(stranger.get("/"))
    assert decide(client_of(), approval).status_code == 302
    assert client_of().get("/approvals/").status_code == 302
    approval.refresh_from_db()
    assert approval.decision == ""
