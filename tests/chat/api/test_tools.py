"""The list of tools over REST: complete, with policy and reason, for whoever may read."""

import pytest
from django.test import Client

from accounts.services import token_create
from tools.definitions import ToolContext
from tools.registry import registry, tool

pytestmark = pytest.mark.django_db


def tools_of(client) -> dict[str, dict]:
    response = client.get("/api/tools/")
    assert response.status_code == 200
    body = response.json()
    assert set(body) == {"count", "next", "previous", "results"}
    assert body["count"] == len(body["results"])
    return {row["name"]: row for row in body["results"]}


def test_tools_lists_every_tool_as_a_model_is_told_of_it(client_of, user):
    found = tools_of(client_of(user))
    assert tuple(found) == registry.names()
    for spec in registry.definitions():
        assert found[spec.name]["description"] == spec.description
        assert found[spec.name]["parameters"] == spec.parameters


def test_tools_say_what_is_decided_and_whose_word_it_is(client_of, user, settings):
    with registry.temporarily():

        @tool(effect="external")
        def send(context: ToolContext) -> str:
            """Send."""
            return ""

        settings.NOTEWIRE_TOOL_POLICY = "current_time=off"
        found = tools_of(client_of(user))
    assert (found["send"]["effect"], found["send"]["policy"]) == ("external", "ask")
    assert found["send"]["reason"] == "the default for tools with the effect external"
    assert found["current_time"]["policy"] == "off"
    assert "NOTEWIRE_TOOL_POLICY" in found["current_time"]["reason"]


def test_tools_are_an_empty_list_when_there_are_none(client_of, user):
    with registry.temporarily(alone=True):
        assert tools_of(client_of(user)) == {}


def test_tools_refuse_who_is_not_known(client):
    response = client.get("/api/tools/")
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "not_authenticated"


@pytest.mark.parametrize(("scopes", "status"), [(["read"], 200), (["write"], 403)])
def test_tools_need_a_token_that_may_read(user, scopes, status):
    _, secret = token_create(owner=user, name="script", scopes=scopes)
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    assert client.get("/api/tools/").status_code == status


def test_tools_cannot_be_changed(client_of, user):
    response = client_of(user).post("/api/tools/", {}, content_type="application/json")
    assert response.status_code == 405
