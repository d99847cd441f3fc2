"""The chat pages: list, transcript, sending, stopping and the stream; each for its owner alone."""

import re

import pytest
from django.urls import reverse

from chat.models import Conversation, Message, Run, RunEvent, RunStatus, ToolCall
from chat.runs.lifecycle import run_start
from web import feed

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}


@pytest.fixture
def browser(client_of, user):
    return client_of(user)


@pytest.fixture
def run(user):
    return run_start(owner=user, content="Find <b>milk</b>\nplease")


def page_of(response):
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def conversation_url(run: Run) -> str:
    return reverse("chat:conversation", args=[run.conversation_id])


def answered(run: Run, **changes) -> Message:
    """The run's only answer, with one tool call, all committed."""
    values = {"content": "**Here**", "thinking": "Hm.", "finish_reason": "end_turn", "iteration": 1}
    message = Message.objects.create(
        conversation=run.conversation,
        parent=run.message,
        role="assistant",
        run=run,
        **(values | changes),
    )
    ToolCall.objects.create(
        owner=run.owner,
        conversation=run.conversation,
        message=message,
        position=0,
        call_id="c1",
        name="note_search",
        arguments='{"query": "milk"}',
        status="done",
        result='{"results": []}',
        extra={"summary": "0 results", "duration_ms": 41, "touched": []},
    )
    Conversation.objects.filter(pk=run.conversation_id).update(leaf=message)
    return message


def closed(run: Run, reason: str = "end_turn", **columns) -> None:
    Run.objects.filter(pk=run.pk).update(status=RunStatus.FINISHED, stop_reason=reason, **columns)


def test_home_offers_a_first_message_and_lists_nothing_yet(browser):
    page = page_of(browser.get("/"))
    assert "What shall we do?" in page
    assert "No conversations yet." in page
    assert 'name="content"' in page


def test_sending_without_script_stores_the_message_and_shows_its_conversation(browser, user):
    response = browser.post("/", {"content": "Hello\r\nthere"})
    run = Run.objects.get(owner=user)
    assert response["Location"] == conversation_url(run)
    assert run.message.content == "Hello\nthere"
    page = page_of(browser.get(response["Location"]))
    assert "Hello\nthere" in page
    assert '<noscript><meta http-equiv="refresh"' in page
    assert page.count('class="spinner"') == 1


def test_sending_with_script_answers_with_the_message_and_a_run_to_follow(browser, run, user):
    closed(run)
    answer = browser.post(conversation_url(run), {"content": "More <b>"}, headers=JSON).json()
    newest = Run.objects.filter(owner=user).latest("created")
    assert answer["run"] == str(newest.id)
    assert answer["url"] == conversation_url(run)
    assert "More &lt;b&gt;" in answer["html"]
    assert f'data-stream="/chat/runs/{newest.id}/stream/"' in answer["html"]


def test_transcript_shows_question_answer_thinking_and_call(browser, run):
    answered(run)
    closed(run)
    page = page_of(browser.get(conversation_url(run)))
    assert "Find &lt;b&gt;milk&lt;/b&gt;\nplease" in page
    assert "<p><strong>Here</strong></p>" in page
    assert "Hm.</p></details>" in page
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    assert "note_search milk · 0 results · 41 ms" in text
    assert "data-stream" not in page
    assert "<noscript>" not in page


def test_transcript_shows_ends_that_are_not_fine(browser, run):
    answered(run, stopped=True, finish_reason="")
    RunEvent.objects.create(
        run=run, attempt=1, seq=1, kind="notice", data={"code": "retried", "text": "Tried again."}
    )
    closed(run, "stopped")
    page = page_of(browser.get(conversation_url(run)))
    assert "You stopped this answer." in page
    assert "Tried again." in page
    closed(run, "error", error_code="provider_error", error_message="No credit.", error_status=402)
    page = page_of(browser.get(conversation_url(run)))
    assert "No credit." in page
    assert "402" in page


@pytest.mark.parametrize("content", ["", "  \n ", "a\0b"])
def test_a_message_that_cannot_be_sent_is_refused_and_kept(browser, run, content):
    closed(run)
    before = Message.objects.count()
    for path in ("/", conversation_url(run)):
        response = browser.post(path, {"content": content}, headers=JSON)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid")
        assert browser.post(path, {"content": content}).status_code == 400
    assert Message.objects.count() == before


def test_a_busy_conversation_keeps_the_draft_and_says_so(browser, run):
    response = browser.post(conversation_url(run), {"content": "my draft"}, headers=JSON)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "conversation_busy")
    page = browser.post(conversation_url(run), {"content": "my draft"}).content.decode()
    assert ">my draft</textarea>" in page
    assert "still answering" in page


def test_too_long_a_message_is_refused(browser):
    response = browser.post("/", {"content": "x" * 200_001}, headers=JSON)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "message_too_large")


def test_stop_ends_a_run_from_any_page_and_may_be_repeated(browser, run):
    url = reverse("chat:stop", args=[run.id])
    assert browser.get(url).status_code == 405
    for _ in range(2):
        assert browser.post(url, headers=JSON).json() == {"run": str(run.id)}
    run.refresh_from_db()
    assert (run.status, run.stop_reason) == ("finished", "stopped")
    assert browser.post(url)["Location"] == conversation_url(run)


def test_failed_answer_is_tried_again_in_its_place(browser, run):
    closed(run, "error", error_code="provider_error", error_message="No credit.")
    url = reverse("chat:retry", args=[run.id])
    assert f'data-again="{url}"' in page_of(browser.get(conversation_url(run)))
    answer = browser.post(url, headers=JSON).json()
    assert answer["run"] != str(run.id)
    assert "question" not in answer["html"]
    page = page_of(browser.get(conversation_url(run)))
    assert "No credit." not in page
    assert f'id="run-{answer["run"]}"' in page


def test_stopped_answer_is_continued_below_what_is_there(browser, run):
    answered(run, stopped=True, finish_reason="")
    closed(run, "stopped")
    url = reverse("chat:continue", args=[run.id])
    assert f'data-again="{url}"' in page_of(browser.get(conversation_url(run)))
    assert browser.post(url)["Location"] == conversation_url(run)
    page = page_of(browser.get(conversation_url(run)))
    assert page.count('class="question"') == 1
    assert page.index("<strong>Here</strong>") < page.index("data-stream")
    busy = browser.post(url, headers=JSON)
    assert (busy.status_code, busy.json()["error"]["code"]) == (409, "conversation_busy")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_stream_is_refused_to_other_sites(browser, run, site):
    response = browser.get(reverse("chat:stream", args=[run.id]), headers={"Sec-Fetch-Site": site})
    assert response.status_code == 403


@pytest.mark.parametrize("site", [{}, {"Sec-Fetch-Site": "same-origin"}])
def test_stream_is_an_event_stream_that_nothing_stores(browser, run, site):
    response = browser.get(reverse("chat:stream", args=[run.id]), headers=site)
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/event-stream")
    assert "no-store" in response["Cache-Control"]


def test_a_strangers_conversation_and_run_are_missing_ones(client_of, other_user, run):
    stranger = client_of(other_user)
    page = stranger.get(conversation_url(run))
    assert page.status_code == 404
    assert stranger.post(conversation_url(run), {"content": "x"}).status_code == 404
    assert stranger.get(reverse("chat:stream", args=[run.id])).status_code == 404
    for name in ("stop", "continue", "retry"):
        assert stranger.post(reverse(f"chat:{name}", args=[run.id])).status_code == 404
    assert "Find" not in page_of(stranger.get("/"))
    run.refresh_from_db()
    assert run.stop_requested is None


@pytest.mark.parametrize("name", ["conversation", "stream", "stop", "continue", "retry"])
def test_anonymous_visitors_are_asked_to_log_in(client_of, run, name):
    key = run.conversation_id if name == "conversation" else run.id
    url = reverse(f"chat:{name}", args=[key])
    for response in (client_of().get(url), client_of().post(url)):
        assert response.status_code == 302
        assert response["Location"].startswith("/login/")


def test_posts_need_the_csrf_token_and_say_so_in_json(client_of, user, run):
    client = client_of(user, enforce_csrf_checks=True)
    for url in ("/", conversation_url(run), reverse("chat:stop", args=[run.id])):
        response = client.post(url, {"content": "x"}, headers=JSON)
        assert (response.status_code, response.json()["error"]["code"]) == (403, "csrf_failed")


def test_conversations_stand_under_their_day_newest_first(browser, user):
    first = run_start(owner=user, content="First question")
    second = run_start(owner=user, content="Second question")
    Conversation.objects.filter(pk=first.conversation_id).update(updated="2020-05-02T00:00Z")
    page = page_of(browser.get("/"))
    places = [
        page.index(text) for text in ("Today", "Second question", "May 2020", "First question")
    ]
    assert places == sorted(places)
    assert second.conversation_id != first.conversation_id


def test_queries_do_not_grow_with_the_transcript(browser, run, django_assert_max_num_queries):
    answered(run)
    closed(run)
    for _ in range(5):
        more = run_start(owner=run.owner, content="again", conversation_id=run.conversation_id)
        closed(more)
    with django_assert_max_num_queries(21):
        browser.get(conversation_url(run))


def test_list_alone_is_its_owners(client_of, browser, other_user, run):
    url = f"/chat/list/?at={run.conversation_id}"
    part = page_of(browser.get(url))
    assert "<html" not in part
    assert re.search(r'aria-current="true"><span class="title">Find &lt;b&gt;milk', part)
    assert "aria-current" not in page_of(browser.get("/chat/list/?at=x"))
    assert "milk" not in page_of(client_of(other_user).get(url))
    assert client_of().get(url).status_code == 302


def test_page_says_where_the_feed_stood_before_it_was_read(client_of, browser, user):
    assert 'data-feed="0"' in page_of(browser.get("/notes/"))
    run_start(owner=user, content="one")
    last = feed.position_last(owner_id=user.pk)
    assert last > 0
    assert f'data-feed="{last}"' in page_of(browser.get("/"))
    assert "data-feed" not in page_of(client_of().get("/login/"))


def test_feed_is_not_asked_for_parts_of_pages(browser, monkeypatch):
    monkeypatch.setattr(feed, "position_last", lambda **_: pytest.fail("asked"))
    assert browser.get("/notes/", headers={"HX-Request": "true"}).status_code == 200


@pytest.mark.parametrize("name", ["continue", "retry"])
def test_answer_that_others_follow_is_not_begun_again(browser, run, name):
    answered(run)
    closed(run)
    closed(run_start(owner=run.owner, content="more", conversation_id=run.conversation_id))
    response = browser.post(reverse(f"chat:{name}", args=[run.id]), headers=JSON)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "run_superseded")
