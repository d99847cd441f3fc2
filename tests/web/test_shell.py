"""The shell: the import map, the theme, and a policy that leaves no room for inline code."""

import json
import re

import pytest

pytestmark = pytest.mark.django_db


def test_import_map_names_our_modules_under_a_nonce_of_the_policy(client_of, user):
    response = client_of(user).get("/")
    policy = response["Content-Security-Policy"]
    nonce, body = re.findall(
        r'<script type="importmap" nonce="(.+?)">(.*?)</script>', response.content.decode(), re.S
    )[0]
    assert f"'nonce-{nonce}'" in policy
    assert "unsafe" not in policy
    assert json.loads(body)["imports"]["notewire/http"].startswith("/static/js/http")


@pytest.mark.parametrize("path", ["/", "/notes/"])
def test_page_has_no_inline_script_or_style(client_of, user, path):
    page = client_of(user).get(path).content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
    assert not re.search(r"<script(?![^>]*\b(src|importmap))", page)


@pytest.mark.parametrize(
    ("cookie", "shown"), [("dark", True), ("light", True), ('"><script>', False), ("", False)]
)
def test_theme_comes_from_the_cookie_and_only_known_ones(client_of, user, cookie, shown):
    client = client_of(user)
    client.cookies["theme"] = cookie
    page = client.get("/").content.decode()
    assert (f'<html lang="en" data-theme="{cookie}">' in page) is shown
    assert ('<html lang="en">' in page) is not shown


@pytest.mark.parametrize("path", ["/", "/notes/"])
def test_page_asks_anonymous_visitors_to_log_in(client_of, path):
    response = client_of().get(path)
    assert response.status_code == 302
    assert "login" in response["Location"]


@pytest.mark.parametrize("path", ["/", "/notes/", "/notes/new/"])
def test_private_pages_enforce_trusted_types_and_are_stored_nowhere(client_of, user, path):
    response = client_of(user).get(path)
    assert "require-trusted-types-for 'script'" in response["Content-Security-Policy"]
    assert "trusted-types notewire default" in response["Content-Security-Policy"]
    assert "no-store" in response["Cache-Control"]
