"""The log of refused requests: a line for each, without a traceback."""

import io
import logging

import pytest

from web.logs import WithoutTraceback

pytestmark = pytest.mark.django_db


@pytest.fixture
def log():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(WithoutTraceback())
    logger = logging.getLogger("django.request")
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)


def test_refusal_in_the_admin_is_one_line(client_of, user, log, settings):
    user.is_staff = True
    user.save()
    assert client_of(user).get("/admin/accounts/user/").status_code == 403
    assert log.getvalue().splitlines() == [
        "Forbidden (Permission denied): /admin/accounts/user/",
    ]
    assert "web.logs.WithoutTraceback" in str(settings.LOGGING["filters"])
    assert "without_traceback" in settings.LOGGING["handlers"]["console"]["filters"]


@pytest.mark.urls("tests.web.urls")
def test_crash_keeps_its_traceback(client_of, user, log):
    client = client_of(user, raise_request_exception=False)
    assert client.get("/page/crash/").status_code == 500
    assert "Traceback" in log.getvalue()
