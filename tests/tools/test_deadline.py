import math
import time

import pytest
from django.contrib.auth import get_user_model
from django.db import connection

from tools.deadline import OutOfTime, atomic_until

pytestmark = pytest.mark.django_db


def make_user() -> None:
    get_user_model().objects.create(username="alice")


def users() -> int:
    return get_user_model().objects.count()


@pytest.mark.parametrize("seconds", [30, math.inf])
def test_atomic_until_commits_in_time(seconds):
    with atomic_until(time.monotonic() + seconds):
        make_user()
    assert users() == 1


def test_atomic_until_does_not_begin_when_time_is_up():
    with pytest.raises(OutOfTime), atomic_until(time.monotonic()):
        make_user()
    assert users() == 0


def test_atomic_until_changes_nothing_when_time_runs_out_inside():
    deadline = time.monotonic() + 0.02
    with pytest.raises(OutOfTime), atomic_until(deadline):
        make_user()
        while time.monotonic() < deadline:
            pass
    assert users() == 0


def test_atomic_until_ends_a_statement_that_takes_longer():
    began = time.monotonic()
    with (
        pytest.raises(OutOfTime),
        atomic_until(began + 0.05),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT pg_sleep(10)")
    assert time.monotonic() - began < 5


@pytest.mark.django_db(transaction=True)
def test_atomic_until_leaves_no_time_out_behind():
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        before = cursor.fetchone()
    with atomic_until(time.monotonic() + 30), connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        inside = cursor.fetchone()
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert (cursor.fetchone(), inside != before) == (before, True)
