"""``GET /api/models/`` over the real server, with a runtime that only has a catalogue."""

import httpx
import pytest

from accounts.services import token_create
from chat.providers.catalogue import Catalogue
from chat.providers.http import build_client


class CatalogueOnly:
    """As much of a runtime as the endpoint needs."""

    def __init__(self, *, worker=False):
        self._client = build_client()
        self.catalogue = Catalogue(self._client)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        await self._client.aclose()

    async def drain(self):
        pass


@pytest.fixture
def runtime(settings):
    settings.NOTEWIRE_RUNTIME = f"{__name__}.CatalogueOnly"


def ask(server, secret):
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    return httpx.get(f"{server.url}/api/models/", headers=headers, timeout=20)


def test_models_are_listed_for_whoever_may_read(runtime, settings, server, django_user_model):
    settings.OLLAMA_BASE_URL = "http://127.0.0.1:1"
    owner = django_user_model.objects.create_user("ada")
    reader = token_create(owner=owner, name="r", scopes=["read"])[1]
    writer = token_create(owner=owner, name="w", scopes=["write"])[1]
    answer = ask(server, reader)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {
        "count": 1,
        "next": None,
        "previous": None,
        "results": [
            {
                "id": "demo/demo",
                "provider": "demo",
                "provider_label": "Demo",
                "model": "demo",
                "capabilities": {"tools": True, "context_length": None},
            }
        ],
        "default": None,
        "problems": {"ollama": "Nothing answers at Ollama (127.0.0.1:1). Is it running?"},
    }
    assert ask(server, writer).status_code == 403
    assert ask(server, "").status_code == 401
