"""Which errors mean that the database is away, and how often the log hears of them."""

from __future__ import annotations

import logging

import psycopg
import pytest
from django.db import IntegrityError, InterfaceError, OperationalError
from psycopg import errors
from psycopg_pool import PoolTimeout

from web import outages
from web.outages import OncePerOutage, is_outage


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError("server closed the connection unexpectedly"),
        PoolTimeout("couldn't get a connection after 3.00 sec"),
        errors.AdminShutdown("terminating connection"),
        errors.CannotConnectNow("the database system is starting up"),
        errors.TooManyConnections("sorry"),
        OperationalError("the connection is lost"),
        caused(OperationalError("x"), errors.CrashShutdown("x")),
        InterfaceError("connection already closed"),
        caused(RuntimeError("could not save"), PoolTimeout("x")),
    ],
)
def test_outage_is_known_by_its_errors(error):
    assert is_outage(error)


@pytest.mark.parametrize(
    "error",
    [
        None,
        RuntimeError("the connection is lost"),
        IntegrityError("twice"),
        errors.QueryCanceled("statement timeout"),
        caused(OperationalError("x"), errors.QueryCanceled("statement timeout")),
        caused(OperationalError("x"), errors.DeadlockDetected("x")),
        caused(OperationalError("x"), errors.DiskFull("x")),
        InterfaceError("the cursor is closed"),
    ],
)
def test_other_errors_are_none(error):
    assert not is_outage(error)


def test_errors_in_a_circle_are_looked_at_once():
    one, other = RuntimeError("one"), RuntimeError("other")
    one.__context__, other.__context__ = other, one
    assert not is_outage(one)


def record(error: BaseException | None, *args: object, line: int = 1, name: str = "some"):
    told = (type(error), error, error.__traceback__) if error else None
    words = "Failed: %s" if args else "Failed"
    return logging.LogRecord(name, logging.ERROR, "some.py", line, words, args, told)


def raised(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as found:
        return found


def test_outage_is_logged_in_one_line_once_a_minute(monkeypatch):
    now = 1000.0
    monkeypatch.setattr("web.outages.time.monotonic", lambda: now)
    kept = OncePerOutage()
    lost = raised(psycopg.OperationalError("connection failed\n\tIs it running?"))
    first = record(lost)
    assert kept.filter(first)
    line = logging.Formatter("%(message)s").format(first)
    assert line == "Failed: connection failed Is it running?"
    assert not kept.filter(record(lost))
    assert kept.filter(record(lost, line=2))  # another place has its own line
    now += outages.SILENT_SECONDS
    assert kept.filter(record(lost))


def test_outage_within_the_words_counts(monkeypatch):
    kept = OncePerOutage()
    lost = psycopg.OperationalError("gone")
    first = record(None, lost)
    assert kept.filter(first)
    assert first.getMessage() == "Failed: gone"
    assert not kept.filter(record(None, lost))


def test_pool_is_heard_once_whatever_it_says():
    kept = OncePerOutage()
    assert kept.filter(record(None, "pool-1", name="psycopg.pool"))
    assert not kept.filter(record(None, "pool-1", name="psycopg.pool"))


def test_other_errors_keep_their_tracebacks():
    kept = OncePerOutage()
    for _ in range(3):
        broken = record(raised(RuntimeError("a bug")))
        assert kept.filter(broken)
        assert broken.exc_info is not None
