"""Deciding on pages: the card in its conversation, the inbox, the badge; for the owner alone."""

import re

import pytest
from django.urls import reverse

from chat.models import ToolRule
from chat.runs import deciding, event_log
from chat.transcript.conversations import conversation_delete
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


def decide(client, approval, decision="approve", *, headers=JSON, reason="", **fields):
    url = reverse("chat:approval", args=[approval.id])
    said = {"decision": decision, f"reason-{approval.id}": reason}
    return client.post(url, said | fields, headers=headers)


def preview(client, approval, headers=JSON, **fields):
    url = reverse("chat:approval-preview", args=[approval.id])
    return client.post(url, {"decision": "preview"} | fields, headers=headers)


def seen(html: str) -> dict[str, str]:
    """What a card that shows changes sends of them."""
    return dict(re.findall(r'name="(previewed-[^"]*)" value="([^"]*)"', html))


def decide_all(client, asked, decision="approve", *, headers=JSON, **fields):
    url = reverse("chat:approvals-together", args=[asked[0].call.message_id])
    said = {"decision": decision, "asked": [each.id for each in asked]}
    return client.post(url, said | fields, headers=headers)


def words(html: str) -> list[str]:
    return re.findall(r'class="word">([^<]*)<', html)


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
            decide(client, second, "deny-on", reason="no <b>")
        elif stage == "over":
            paused.go_on()
        page = section(page_of(client.get(conversation(paused.run))), paused.run)
        assert bare(page) == bare(streamed(paused.run)), stage
        assert page.count("approval pending") == {"asked": 2, "approved": 1}.get(stage, 0)
        assert page.count("data-card") == (stage in ("asked", "approved"))
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


def test_calls_of_one_answer_are_one_card_in_both_places(client_of, user, waiting):
    client = client_of(user)
    paused = waiting("red", "blue", "green")
    waiting("white")
    for path, cards in ((conversation(paused.run), 1), ("/approvals/", 2)):
        page = page_of(client.get(path))
        assert page.count("data-card") == cards
        assert page.count("asks about 3 calls at once") == 1
        assert page.count("Approve all 3") == 1
    decide(client, paused.approvals[0])
    page = page_of(client.get("/approvals/"))
    assert "asks about 2 calls at once" in page
    decide(client, paused.approvals[1])
    assert "at once" not in page_of(client.get("/approvals/"))


def test_all_are_approved_in_one_go(client_of, user, waiting, lamp):
    paused = waiting("red", "blue")
    lamp.step = 0
    response = decide_all(client_of(user), paused.approvals)
    assert words(response.json()["html"]) == ["Approved by ada"] * 2
    assert paused.go_on().stop_reason == "end_turn"
    assert lamp.set == ["red", "blue"]


def test_card_of_very_many_calls_can_be_decided(client_of, user, waiting, lamp):
    paused = waiting("red")
    lamp.step = 0
    others = {f"argument-{number}-colour": "red" for number in range(2_000)}
    assert decide_all(client_of(user), paused.approvals, **others).status_code == 200
    assert paused.approvals[0].decision == "approved"


@pytest.mark.parametrize(("decision", "ends"), [("deny", "denied"), ("deny-on", "end_turn")])
def test_all_are_denied_in_one_go(client_of, user, waiting, lamp, decision, ends):
    paused = waiting("red", "blue")
    response = decide_all(client_of(user), paused.approvals, decision, reason="not now")
    assert words(response.json()["html"]) == ["Denied by ada: not now"] * 2
    assert paused.go_on().stop_reason == ends
    assert lamp.set == []


def over_rest(client, approval):
    word = {"decision": "approve"}
    return client.post(f"/api/approvals/{approval.id}/", word, content_type="application/json")


@pytest.mark.parametrize("word", [decide, lambda client, one: decide_all(client, [one]), over_rest])
def test_word_beside_the_deletion_of_its_conversation_is_not_found(
    client_of, user, waiting, lamp, monkeypatch, word
):
    paused = waiting("red")
    describe = deciding._described

    def described(*asked):
        conversation_delete(owner=user, conversation_id=paused.run.conversation_id)
        return describe(*asked)

    monkeypatch.setattr(deciding, "_described", described)
    assert word(client_of(user), paused.approvals[0]).status_code == 404
    assert lamp.set == []


def test_one_word_for_all_is_about_what_was_shown_and_still_waits(client_of, user, waiting):
    paused = waiting("red", "blue", "green")
    red, blue, green = paused.approvals
    client = client_of(user)
    decide(client, red, "deny-on")
    decide_all(client, [red, blue])
    assert [each.decision for each in paused.approvals] == ["denied", "approved", ""]
    assert decide_all(client, [green], "approve-always").status_code == 400
    assert paused.approvals[2].decision == ""


def test_what_cannot_be_approved_with_the_others_keeps_its_place(client_of, user, waiting, lamp):
    paused = waiting("red", "blue")
    lamp.version, lamp.before = 2, "grey"
    stale = decide_all(client_of(user), paused.approvals)
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "approval_stale")
    assert stale.json()["error"]["html"].count("-grey") == 2
    assert [each.decision for each in paused.approvals] == ["", ""]


def test_arguments_are_changed_and_told(client_of, user, waiting, lamp):
    paused = waiting("red")
    [approval] = paused.approvals
    client = client_of(user)
    pink = {f"argument-{approval.id}-colour": "pink"}
    shown = preview(client, approval, **pink).json()
    assert shown["changed"] is True
    assert "Make it pink." in shown["html"]
    assert '<span class="added">+pink</span>' in shown["html"]
    response = decide(client, approval, **pink, **seen(shown["html"]))
    assert words(response.json()["html"]) == ["Approved by ada with a change of colour"]
    paused.go_on()
    assert lamp.set == ["pink"]
    page = page_of(client.get(conversation(paused.run)))
    assert "The person changed the arguments of this call" in page
    assert "with a change of colour" in page


@pytest.mark.parametrize("headers", [JSON, {"Accept": "text/html"}])
def test_change_that_was_not_seen_is_shown_and_not_approved(
    client_of, user, waiting, lamp, headers
):
    paused = waiting("red", "blue")
    first, second = paused.approvals
    client = client_of(user)
    typed = {f"argument-{first.id}-colour": "pink", f"reason-{first.id}": "hm"}
    response = decide_all(client, [first, second], headers=headers, **typed)
    assert response.status_code == 409
    html = response.json()["error"]["html"] if headers is JSON else response.content.decode()
    assert [each.decision for each in paused.approvals] == ["", "approved"]
    assert "<strong>With your change:</strong> Make it pink." in html
    assert "data-changed>" in html
    assert "\npink</textarea>" in html
    assert "\nhm</textarea>" in html
    assert list(seen(html)) == [f"previewed-{first.id}"]
    # It is about just that change, and about the lamp as it was.
    other = typed | {f"argument-{first.id}-colour": "grey"} | seen(html)
    assert decide(client, first, **other).status_code == 409
    lamp.version = 3
    assert decide(client, first, **typed, **seen(html)).status_code == 409
    lamp.version, lamp.step = 1, 0
    assert decide(client, first, **typed, **seen(html)).status_code == 200
    paused.go_on()
    assert lamp.set == ["pink", "blue"]


def test_preview_without_a_script_shows_the_change_of_every_call(client_of, user, waiting):
    first, second = waiting("red", "blue").approvals
    typed = {f"argument-{first.id}-colour": "pink", f"argument-{second.id}-colour": ""}
    response = preview(client_of(user), first, headers={"Accept": "text/html"}, **typed)
    page = page_of(response)
    assert "Make it pink." in page
    assert "at least 1 character" in page
    assert page.count("data-changed>") == 2


def test_preview_says_what_is_wrong_and_whether_anything_is_changed(client_of, user, waiting):
    [approval] = waiting().approvals
    client = client_of(user)
    name = f"argument-{approval.id}-colour"
    wrong = preview(client, approval, **{name: ""}).json()
    assert wrong["changed"] is True
    assert re.search(r"<li>colour: .*at least 1 character", wrong["html"])
    assert preview(client, approval, **{name: "red"}).json() == {"html": "", "changed": False}


def test_preview_of_what_was_decided_elsewhere_shows_how_it_stands(client_of, user, waiting):
    [approval] = waiting().approvals
    client = client_of(user)
    decide(client, approval, "deny")
    late = preview(client, approval, **{f"argument-{approval.id}-colour": "pink"})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "approval_closed")
    assert words(late.json()["error"]["html"]) == ["Denied by ada"]


def test_preview_is_for_the_owner_alone(client_of, other_user, waiting):
    [approval] = waiting().approvals
    assert preview(client_of(other_user), approval).status_code == 404
    assert preview(client_of(), approval).status_code == 302
    assert client_of(approval.owner).get(f"/approvals/{approval.id}/preview/").status_code == 405


def test_arguments_that_stay_as_they_are_are_not_changed(client_of, user, waiting, lamp):
    [approval] = waiting("red\nblue").approvals
    decide(client_of(user), approval, **{f"argument-{approval.id}-colour": "red\r\nblue"})
    approval.refresh_from_db()
    assert (approval.decision, approval.arguments) == ("approved", None)


def test_wrong_argument_is_said_at_its_field_and_nothing_typed_is_lost(client_of, user, waiting):
    first, second = waiting("red", "blue").approvals
    typed = {f"argument-{first.id}-colour": "", f"reason-{first.id}": "hm"}
    for headers in (JSON, {"Accept": "text/html"}):
        response = decide(client_of(user), first, headers=headers, **typed)
        assert response.status_code == 400
        is_json = headers is JSON
        html = response.json()["error"]["html"] if is_json else response.content.decode()
        card = html[html.index(f"approval-{first.id}-edit") : html.index(f"approval-{second.id}")]
        assert re.search(r'<textarea [^>]*aria-invalid="true"[^>]*>\n</textarea>', card)
        assert "at least 1 character" in card
        assert is_json or 'class="toast ' not in html
        assert "\nhm</textarea>" in card
        assert f'id="approval-{first.id}-edit" open' in html
        assert f'id="approval-{second.id}-edit">' in html
    first.refresh_from_db()
    assert first.decision == ""


def test_wrong_argument_of_one_does_not_keep_the_others(client_of, user, waiting):
    paused = waiting("red", "blue")
    first, second = paused.approvals
    response = decide_all(client_of(user), [first, second], **{f"argument-{first.id}-colour": ""})
    assert response.status_code == 400
    assert [each.decision for each in paused.approvals] == ["", "approved"]


def test_what_is_no_json_is_said_at_its_field(client_of, user, waiting):
    _, approval = waiting("red", fade=5).approvals
    response = decide(client_of(user), approval, **{f"argument-{approval.id}-seconds": "five"})
    assert response.status_code == 400
    assert "This is not JSON" in response.json()["error"]["html"]


def test_inbox_answers_with_its_own_part(client_of, user, waiting):
    paused = waiting("red", "blue")
    first, second = paused.approvals
    response = decide(client_of(user), first, inbox="1")
    html = response.json()["html"]
    assert html.startswith(f'<article id="asked-{first.call.message_id}">')
    assert words(html) == ["Approved by ada"]
    assert f'id="approval-{second.id}"' in html
    assert 'name="inbox"' in html


def test_stranger_and_anonymous_decide_nothing_together(client_of, other_user, waiting):
    paused = waiting("red", "blue")
    assert decide_all(client_of(other_user), paused.approvals).status_code == 404
    assert decide_all(client_of(), paused.approvals).status_code == 302
    assert [each.decision for each in paused.approvals] == ["", ""]


def test_card_that_was_shown_anew_elsewhere_is_looked_at_again(client_of, user, waiting, lamp):
    def seals(path):
        html = page_of(client.get(path))
        return dict(re.findall(r'name="(seen-[^"]*)" value="([^"]*)"', html))

    paused = waiting("red", "blue")
    client = client_of(user)
    old = seals("/approvals/")
    assert len(old) == 2
    assert seals(conversation(paused.run)) == old
    lamp.version, lamp.before = 2, "grey"
    # Another window is told that it is stale; this one still shows what was.
    decide_all(client, paused.approvals)
    late = decide(client, paused.approvals[0], **old), decide_all(client, paused.approvals, **old)
    for response in late:
        assert (response.status_code, response.json()["error"]["code"]) == (409, "approval_stale")
        assert "-grey" in response.json()["error"]["html"]
    assert [each.decision for each in paused.approvals] == ["", ""]
    assert decide_all(client, paused.approvals, **seals("/approvals/")).status_code == 200
