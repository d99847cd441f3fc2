"""The probes: what they say to everyone, and what to whoever holds the token."""

from __future__ import annotations

import httpx
import pytest
from django.db import OperationalError

from config import health


def test_healthz_answers_without_database_whatever_the_host(server, monkeypatch):
    monkeypatch.setattr(health.Health, "_database_state", lambda self: 1 / 0)
    response = httpx.get(f"{server.url}/healthz", headers={"Host": "10.0.0.9"})
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_readyz_is_ready_and_keeps_details_to_itself(server):
    response = httpx.get(f"{server.url}/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready"})


@pytest.mark.parametrize("given", ["Bearer wrong", "right", "", "Bearer"])
def test_readyz_details_need_the_token(server, settings, given):
    settings.NOTEWIRE_METRICS_TOKEN = "right"
    response = httpx.get(f"{server.url}/readyz", headers={"Authorization": given})
    assert response.json() == {"status": "ready"}


def test_readyz_tells_the_holder_of_the_token(server, settings):
    settings.NOTEWIRE_METRICS_TOKEN = "right"
    response = httpx.get(f"{server.url}/readyz", headers={"Authorization": "Bearer right"})
    assert response.json() == {"status": "ready", "database": "ok", "worker": "running"}


def test_readyz_without_token_set_gives_nobody_details(server, settings):
    settings.NOTEWIRE_METRICS_TOKEN = ""
    response = httpx.get(f"{server.url}/readyz", headers={"Authorization": "Bearer x"})
    assert response.json() == {"status": "ready"}


def test_readyz_is_unavailable_while_migrations_are_missing(server, monkeypatch):
    monkeypatch.setattr(health, "schema_is_current", lambda: False)
    response = httpx.get(f"{server.url}/readyz")
    assert (response.status_code, response.json()) == (503, {"status": "unavailable"})


def test_readyz_is_unavailable_without_database(server, monkeypatch):
    def fail():
        raise OperationalError("no such server")

    monkeypatch.setattr(health, "schema_is_current", fail)
    assert httpx.get(f"{server.url}/readyz").status_code == 503


def test_readyz_is_ready_again_once_the_schema_is_current(server, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(health, "schema_is_current", lambda: False)
        assert httpx.get(f"{server.url}/readyz").status_code == 503
    assert httpx.get(f"{server.url}/readyz").status_code == 200
