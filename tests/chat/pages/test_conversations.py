"""The list of conversations and what is done with one: rename, archive, delete; its owner alone."""

import re

import pytest
from django.urls import reverse

from chat.models import Conversation, RunStatus
from chat.pages import conversations
from chat.runs.lifecycle import run_start
from chat.transcript.conversations import conversation_create

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client_of, user):
    return client_of(user)


@pytest.fixture
def conversation(user):
    return conversation_create(owner=user, title="Weekly plan")


def page_of(response) -> str:
    assert response.status_code == 200, response.status_code
    return str(response.content.decode())


def titles(html: str) -> list[str]:
    return re.findall(r'class="title">([^<]*)<', html)


def do(client, conversation, name, **fields):
    return client.post(reverse(f"chat:{name}", args=[conversation.id]), fields)


def test_list_goes_on_past_its_first_page(browser, user, monkeypatch):
    monkeypatch.setattr(conversations, "LISTED", 2)
    for number in range(5):
        conversation_create(owner=user, title=f"c{number}")
    first = page_of(browser.get("/"))
    assert titles(first) == ["c4", "c3"]
    assert "?page=2" in first
    assert ">Newer<" not in first
    second = page_of(browser.get("/?page=2"))
    assert titles(second) == ["c2", "c1"]
    assert "?page=1" in second
    opened = re.search(r'href="(/chat/[0-9a-f-]{36}/\?page=2)"', second)
    assert opened is not None
    assert titles(page_of(browser.get(opened[1]))) == ["c2", "c1"]
    last = page_of(browser.get("/?page=3"))
    assert titles(last) == ["c0"]
    assert ">Older<" not in last


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 30, "²", ""])
def test_page_that_is_none_is_some_page(browser, conversation, page):
    assert browser.get("/", {"page": page}).status_code == 200


def test_conversation_without_a_title_is_named_by_its_first_message(browser, user):
    made = conversation_create(owner=user)
    assert titles(page_of(browser.get("/"))) == ["New chat"]
    run_start(owner=user, content="Plan the <week>\nplease", conversation_id=made.id)
    assert titles(page_of(browser.get("/"))) == ["Plan the &lt;week&gt;"]


def test_rename(browser, conversation):
    assert do(browser, conversation, "rename", title="  The\n plan ").status_code == 302
    page = page_of(browser.get(f"/chat/{conversation.id}/"))
    assert titles(page) == ["The plan"]
    assert "<h1>The plan</h1>" in page


@pytest.mark.parametrize("title", ["", " ", "x" * 501, "a\0"])
def test_title_that_is_none_changes_nothing(browser, conversation, title):
    response = do(browser, conversation, "rename", title=title)
    assert "Write a title" in page_of(browser.get(response["Location"]))
    conversation.refresh_from_db()
    assert conversation.title == "Weekly plan"


def test_archive_and_back(browser, conversation):
    assert "?archived" not in page_of(browser.get("/"))
    do(browser, conversation, "archive")
    front = page_of(browser.get("/"))
    assert titles(front) == []
    assert "?archived" in front
    assert titles(page_of(browser.get("/?archived"))) == ["Weekly plan"]
    assert "Back to the list" in page_of(browser.get(f"/chat/{conversation.id}/"))
    do(browser, conversation, "archive", back="1")
    assert titles(page_of(browser.get("/"))) == ["Weekly plan"]


def test_delete_stops_what_goes_on_and_takes_all_away(browser, user):
    run = run_start(owner=user, content="hello")
    assert run.status == RunStatus.QUEUED
    response = do(browser, run.conversation, "delete")
    assert (response.status_code, response["Location"]) == (302, "/")
    assert "is deleted" in page_of(browser.get("/"))
    assert not Conversation.objects.exists()
    assert do(browser, run.conversation, "delete").status_code == 404


@pytest.mark.parametrize("name", ["rename", "archive", "delete"])
def test_nobody_else_does_anything(client_of, other_user, conversation, name):
    assert do(client_of(other_user), conversation, name, title="Mine").status_code == 404
    assert do(client_of(), conversation, name, title="Mine")["Location"].startswith("/login/")
    url = reverse(f"chat:{name}", args=[conversation.id])
    assert client_of(other_user).get(url).status_code == 405
    conversation.refresh_from_db()
    assert (conversation.title, conversation.archived) == ("Weekly plan", False)
