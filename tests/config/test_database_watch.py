"""When the embedded server is started again, and what the log hears of it; no server is needed."""

from __future__ import annotations

import threading

import pytest

from config import database_watch, embedded_postgres
from config.embedded_postgres import EmbeddedPostgresError


class Leaving(threading.Event):
    """Lets the watch look so many times, without waiting; keeps how long it would have waited."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self.looks = looks

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.pauses.append(timeout)
        return len(self.pauses) > self.looks


@pytest.fixture
def server(monkeypatch):
    """What the watch finds: whether the server is gone, and what becomes of a start."""

    class Server:
        gone = True
        starts = 0

        def start(self) -> bool:
            self.starts += 1
            self.gone = False
            return True

    found = Server()
    monkeypatch.setattr(embedded_postgres, "is_gone", lambda: found.gone)
    monkeypatch.setattr(embedded_postgres, "start_again", lambda: found.start())
    return found


def test_server_that_is_gone_is_started_once(server, caplog):
    database_watch._watch(Leaving(looks=5))
    assert server.starts == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_server_that_another_process_started_is_not_told_of(server, monkeypatch, caplog):
    monkeypatch.setattr(embedded_postgres, "start_again", lambda: False)
    database_watch._watch(Leaving(looks=3))
    assert caplog.records == []


def test_server_that_is_there_is_left_alone(server):
    server.gone = False
    leaving = Leaving(looks=3)
    database_watch._watch(leaving)
    assert server.starts == 0
    assert set(leaving.pauses) == {database_watch.LOOK_SECONDS}


def test_server_that_cannot_be_started_is_tried_ever_less_often_and_told_once(server, caplog):
    def failing() -> bool:
        raise EmbeddedPostgresError("no space left")

    server.start = failing
    leaving = Leaving(looks=9)
    database_watch._watch(leaving)
    assert leaving.pauses[:4] == [2.0, 4.0, 8.0, 16.0]
    assert leaving.pauses[-1] == database_watch.LONGEST_PAUSE
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "no space left" in caplog.text


def test_nothing_is_watched_with_a_database_of_ones_own(settings):
    settings.NOTEWIRE_DATABASE_IS_EMBEDDED = False
    before = threading.active_count()
    with database_watch.watching():
        assert threading.active_count() == before


def test_watch_ends_with_what_it_was_entered_for(settings):
    settings.NOTEWIRE_DATABASE_IS_EMBEDDED = True
    others = set(threading.enumerate())
    with database_watch.watching():
        (watch,) = set(threading.enumerate()) - others
        assert watch.daemon
    watch.join(timeout=10)
    assert not watch.is_alive()
