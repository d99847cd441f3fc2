"""The variables by which providers are configured: all are read, and none can break a request."""

import pytest
from django.conf import settings

from chat.providers.catalogue import PROVIDERS
from config import env


@pytest.mark.parametrize("row", PROVIDERS, ids=lambda row: row.name)
def test_variables_of_a_provider_are_settings_read_from_the_environment(row):
    for variable in filter(None, (row.key_variable, row.url_variable)):
        assert variable in env.names
        assert getattr(settings, variable) == ""


@pytest.mark.parametrize("value", ["", "sk-proj-aB3_x=+/.:~"])
def test_key_of_any_vendor_is_taken(value):
    assert env._key(value) == value


@pytest.mark.parametrize("value", ["two words", "line\nbreak", "schlüssel", "tab\there"])
def test_key_that_fits_no_header_is_refused(value):
    with pytest.raises(ValueError, match="must be a key"):
        env._key(value)


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("", ""),
        ("http://localhost:11434/", "http://localhost:11434"),
        ("https://api.example.com/v1", "https://api.example.com/v1"),
    ],
)
def test_address_of_a_server_is_taken(value, address):
    assert env._address(value) == address


@pytest.mark.parametrize(
    "value",
    ["localhost:11434", "ftp://a.test", "http://", "http://u:p@a.test", "http://a.test/?k=1"],
)
def test_address_that_cannot_be_asked_is_refused(value):
    with pytest.raises(ValueError, match="must be a URL"):
        env._address(value)


def test_bad_key_ends_the_start_without_showing_it(monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "secret word")
    monkeypatch.setattr(env, "TESTING", False)
    with pytest.raises(SystemExit) as stopped:
        env._read("GROQ_API_KEY", "", env._key)
    env.names.pop()
    assert "GROQ_API_KEY must be a key" in str(stopped.value)
    assert "secret" not in str(stopped.value)
