"""The settings page: mode, language, rules; each person's own."""

import re

import pytest
from django.urls import reverse

from chat.models import Conversation, ToolRule
from chat.runs import rules
from tests.notes.writing import note_create
from tools.registry import Tool, registry

pytestmark = pytest.mark.django_db
PAGE = "/settings/"


def tool_of(name: str) -> Tool:
    tool = registry.get(name)
    assert tool is not None
    return tool


@pytest.fixture
def client(client_of, user):
    return client_of(user)


def page_of(client) -> str:
    response = client.get(PAGE)
    assert response.status_code == 200
    return str(response.content.decode())


def chosen_mode(page: str) -> list[str]:
    return re.findall(r'name="mode" value="(\w+)" checked', page)


def test_page_is_linked_from_every_page(client):
    assert f'href="{PAGE}"' in client.get("/notes/").content.decode()
    assert f'href="{PAGE}" aria-current="page"' in page_of(client)


def test_mode_is_shown_and_changed(client, user):
    assert chosen_mode(page_of(client)) == ["balanced"]
    response = client.post("/settings/asking/", {"mode": "careful"})
    assert (response.status_code, response["Location"]) == (302, PAGE)
    page = page_of(client)
    assert chosen_mode(page) == ["careful"]
    assert "Saved." in page
    user.refresh_from_db()
    assert rules.mode_of(owner=user) == "careful"


def test_mode_that_is_none_changes_nothing(client, user):
    client.post("/settings/asking/", {"mode": "reckless"})
    assert "Choose one of the two." in page_of(client)
    user.refresh_from_db()
    assert user.approval_mode == "balanced"


def test_mode_cannot_be_chosen_where_the_operator_has(client, settings):
    settings.NOTEWIRE_APPROVAL_MODE = "careful"
    page = page_of(client)
    assert chosen_mode(page) == ["careful"]
    assert '<fieldset class="choices" disabled>' in page
    client.post("/settings/asking/", {"mode": "balanced"})
    assert "has chosen the mode" in page_of(client)


def test_language_is_shown_and_changed(client, user):
    page = page_of(client)
    assert '<option value="" selected>Detect it' in page
    assert '<option value="german">German</option>' in page
    client.post("/settings/language/", {"language": "german"})
    user.refresh_from_db()
    assert user.language == "german"
    page = page_of(client)
    assert '<option value="german" selected>German</option>' in page
    assert "Your notes are being read anew, in it." in page
    client.post("/settings/language/", {"language": "klingon"})
    assert "does not know this language" in page_of(client)
    client.post("/settings/language/", {"language": ""})
    user.refresh_from_db()
    assert user.language == ""
    assert "each in the language that is detected in it." in page_of(client)


def test_rules_are_listed_and_taken_back(client, user):
    tool = tool_of("note_update")
    conversation = Conversation.objects.create(owner=user, title="Weekly <plan>")
    rules.rule_allow(owner=user, tool=tool)
    rules.rule_allow(owner=user, tool=tool, conversation=conversation)
    ToolRule.objects.create(owner=user, tool="gone", digest="x", decision="allow")
    page = page_of(client)
    assert page.count("runs without asking") == 2
    assert page.count("was allowed") == 1
    assert page.count("In every conversation") == 2
    assert "Weekly &lt;plan&gt;</a>" in page
    assert page.count("Not in effect:") == 1
    rule = ToolRule.objects.get(conversation=conversation)
    client.post(reverse("chat:settings-rule-revoke", args=[rule.id]))
    page = page_of(client)
    assert "Weekly" not in page
    assert page.count("runs without asking") == 1
    assert client.post(reverse("chat:settings-rule-revoke", args=[rule.id])).status_code == 404


def test_number_of_queries_does_not_grow_with_rules(client, user, django_assert_max_num_queries):
    tool = tool_of("note_update")
    for number in range(5):
        conversation = Conversation.objects.create(owner=user, title=str(number))
        rules.rule_allow(owner=user, tool=tool, conversation=conversation)
    with django_assert_max_num_queries(8):
        page_of(client)


def test_stranger_sees_and_changes_their_own_alone(client, client_of, user, other_user):
    rules.rule_allow(owner=user, tool=tool_of("note_update"))
    rule = ToolRule.objects.get()
    note_create(owner=user, title="one")
    stranger = client_of(other_user)
    assert "note_update" not in page_of(stranger)
    url = reverse("chat:settings-rule-revoke", args=[rule.id])
    assert stranger.post(url).status_code == 404
    stranger.post("/settings/asking/", {"mode": "careful"})
    stranger.post("/settings/language/", {"language": "german"})
    user.refresh_from_db()
    assert (user.approval_mode, user.language) == ("balanced", "")
    assert ToolRule.objects.count() == 1


@pytest.mark.parametrize("path", ["", "asking/", "language/"])
def test_anonymous_logs_in_first(client_of, path):
    client = client_of()
    response = client.post(PAGE + path) if path else client.get(PAGE)
    assert response.status_code == 302
    assert response["Location"].startswith("/login/")
