"""How long a thread waits for a connection: long for a busy server, hardly for one that is away."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection, connections
from django.db.backends.postgresql import base as django_base
from psycopg_pool import PoolTimeout

from config.postgresql import base
from config.postgresql.base import Reach


class Connecting:
    """Connects, or fails while the server is away; counts how often it was tried."""

    def __init__(self) -> None:
        self.away = False
        self.tried = 0

    def __call__(self, **address: object) -> Connecting:
        self.tried += 1
        if self.away:
            raise psycopg.OperationalError("connection refused")
        return self

    def close(self) -> None: ...


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1000.0

    monkeypatch.setattr("config.postgresql.base.time.monotonic", lambda: Clock.now)
    return Clock


def test_outage_and_its_end_are_said_once_each(clock, caplog):
    connecting = Connecting()
    reach = Reach(connecting)
    connecting.away = True
    for _ in range(3):
        clock.now += 2
        with pytest.raises(psycopg.OperationalError, match="refused"):
            reach.look({})
    assert reach.is_known_away
    connecting.away = False
    for _ in range(3):
        clock.now += 2
        reach.look({})
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


def test_server_is_looked_for_once_a_second(clock):
    connecting = Connecting()
    connecting.away = True
    reach = Reach(connecting)
    for _ in range(5):
        with pytest.raises(psycopg.OperationalError):
            reach.look({})
    assert connecting.tried == 1


@pytest.fixture
def waits(monkeypatch):
    """Every wait for the pool ends in vain; how many there were."""
    found = []

    def wait(self, conn_params):
        found.append(conn_params)
        raise PoolTimeout("in vain")

    monkeypatch.setattr(django_base.DatabaseWrapper, "get_new_connection", wait)
    return found


@pytest.fixture
def connecting(monkeypatch):
    found = Connecting()
    monkeypatch.setattr(base.DatabaseWrapper, "reach", Reach(found))
    return found


def test_full_pool_is_waited_for_again_and_again(waits, connecting):
    with pytest.raises(PoolTimeout):
        connection.get_new_connection({})
    assert (len(waits), connecting.tried) == (base.WAITS, 1)


def test_server_that_is_away_is_waited_for_once_and_then_not_at_all(waits, connecting):
    connecting.away = True
    for _ in range(3):
        with pytest.raises(psycopg.OperationalError, match="refused"):
            connection.get_new_connection({})
    assert len(waits) == 1


def test_this_backend_is_in_use():
    assert isinstance(connections["default"], base.DatabaseWrapper)
