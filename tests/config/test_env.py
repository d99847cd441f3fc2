"""Settings of an operator: good values arrive, bad ones end the start with their name."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config import env

ROOT = Path(__file__).resolve().parents[2]
NAMES = re.compile(r"^[A-Z][A-Z_]+$")


GIVEN = "given" * 8


def _python(code: str, home: Path, **variables: str) -> subprocess.CompletedProcess:
    clean = {name: value for name, value in os.environ.items() if name not in env.names}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=clean | {"NOTEWIRE_HOME": str(home)} | variables,
        capture_output=True,
        text=True,
    )


def _settings(home: Path, *names: str, **variables: str):
    """Some settings of a process of its own, which needs no database."""
    code = f"""
import json, os
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
from django.conf import settings
print(json.dumps({{name: getattr(settings, name) for name in {names!r}}}))
"""
    database = {"DATABASE_URL": "postgres://somebody:secret@db.example.org:5433/notes"}
    done = _python(code, home, **(database | variables))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "eighty"),
        ("PORT", "70000"),
        ("NOTEWIRE_GATHER_MS", "-1"),
        ("NOTEWIRE_HISTORY_BYTES", "9" * 30),
        ("NOTEWIRE_DEMO", "perhaps"),
        ("NOTEWIRE_LOG_LEVEL", "LOUD"),
        ("NOTEWIRE_URL", "notes.example.org"),
        ("NOTEWIRE_URL", "https://notes.example.org/path"),
        ("NOTEWIRE_TOOL_POLICY", "note_update=maybe"),
        ("OPENAI_BASE_URL", "ftp://example.org"),
        ("OLLAMA_BASE_URL", "http://host:port"),
        ("DATABASE_URL", "mysql://host/name"),
        ("DATABASE_URL", "postgres://host"),
    ],
)
def test_bad_value_ends_the_start_with_its_name_in_one_line(tmp_path, name, value):
    done = _python("import config.env", tmp_path, **{name: value})
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Notewire cannot start: {name} must")


def test_home_that_cannot_be_made_ends_the_start(tmp_path):
    (tmp_path / "file").touch()
    done = _python("import config.env", tmp_path / "file" / "home")
    assert "NOTEWIRE_HOME must be a folder" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_empty_value_counts_as_unset(tmp_path):
    done = _python("from config import env; print(env.PORT)", tmp_path, PORT="")
    assert done.stdout == "8000\n"


def test_values_arrive_in_settings(tmp_path):
    found = _settings(
        tmp_path,
        "NOTEWIRE_GATHER_MS",
        "NOTEWIRE_DEMO",
        "NOTEWIRE_TOOL_POLICY",
        "OPENAI_BASE_URL",
        "DATABASES",
        NOTEWIRE_GATHER_MS="0",
        NOTEWIRE_DEMO="off",
        NOTEWIRE_TOOL_POLICY="note_update = ask, external=off",
        OPENAI_BASE_URL="http://127.0.0.1:9000/v1/",
    )
    database = found.pop("DATABASES")["default"]
    assert found == {
        "NOTEWIRE_GATHER_MS": 0,
        "NOTEWIRE_DEMO": False,
        "NOTEWIRE_TOOL_POLICY": {"note_update": "ask", "external": "off"},
        "OPENAI_BASE_URL": "http://127.0.0.1:9000/v1",
    }
    assert database["HOST"] == "db.example.org"
    assert database["PORT"] == 5433
    assert database["OPTIONS"]["pool"]["max_size"] == 12
    assert database["CONN_MAX_AGE"] == 0


def test_secret_key_is_made_once_and_kept_private(tmp_path):
    first = _settings(tmp_path, "SECRET_KEY")["SECRET_KEY"]
    assert len(first) > 60
    assert _settings(tmp_path, "SECRET_KEY")["SECRET_KEY"] == first
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert _settings(tmp_path, "SECRET_KEY", SECRET_KEY=GIVEN)["SECRET_KEY"] == GIVEN


def test_secret_key_is_one_when_many_make_it_at_once(tmp_path):
    paths = [tmp_path / "secret_key"] * 3
    assert len({env._kept_secret(path) for path in paths}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_secret_key_that_is_short_ends_the_start_and_is_not_shown(tmp_path):
    done = _python("import config.env", tmp_path, SECRET_KEY="s3cr3t")
    assert "SECRET_KEY must have at least 32 characters" in done.stderr
    assert "s3cr3t" not in done.stderr and "Traceback" not in done.stderr


def test_damaged_secret_key_ends_the_start(tmp_path):
    (tmp_path / "secret_key").write_text("")
    done = _python("import config.env", tmp_path)
    assert "secret_key is damaged" in done.stderr


@pytest.mark.thorough
def test_tests_know_nothing_of_the_keys_of_a_developer(tmp_path):
    code = "import pytest; from config import env; print(repr(env.OPENAI_API_KEY), env.PORT)"
    done = _python(code, tmp_path, OPENAI_API_KEY="sk-real", PORT="nonsense")
    assert done.stdout == "'' 8000\n"


SECURITY = (
    "ALLOWED_HOSTS",
    "CSRF_TRUSTED_ORIGINS",
    "SESSION_COOKIE_SECURE",
    "CSRF_COOKIE_SECURE",
    "SECURE_PROXY_SSL_HEADER",
    "SECURE_HSTS_SECONDS",
    "DEBUG",
)


def test_without_url_this_machine_alone_is_answered(tmp_path):
    found = _settings(tmp_path, *SECURITY)
    assert found["ALLOWED_HOSTS"] == ["localhost", ".localhost", "127.0.0.1", "[::1]"]
    assert found["CSRF_TRUSTED_ORIGINS"] == []
    assert found["SESSION_COOKIE_SECURE"] is False
    assert found["SECURE_PROXY_SSL_HEADER"] is None
    assert found["DEBUG"] is False


def test_host_of_this_machine_is_answered(tmp_path):
    assert "192.0.2.7" in _settings(tmp_path, *SECURITY, HOST="192.0.2.7")["ALLOWED_HOSTS"]
    assert "*" not in _settings(tmp_path, *SECURITY, HOST="0.0.0.0")["ALLOWED_HOSTS"]  # noqa: S104


def test_https_url_decides_hosts_origins_cookies_and_proxy(tmp_path):
    found = _settings(tmp_path, *SECURITY, NOTEWIRE_URL="https://notes.example.org/")
    assert "notes.example.org" in found["ALLOWED_HOSTS"]
    assert found["CSRF_TRUSTED_ORIGINS"] == ["https://notes.example.org"]
    assert found["SESSION_COOKIE_SECURE"] is True
    assert found["CSRF_COOKIE_SECURE"] is True
    assert found["SECURE_PROXY_SSL_HEADER"] == ["HTTP_X_FORWARDED_PROTO", "https"]
    assert found["SECURE_HSTS_SECONDS"] > 0


def test_http_url_demands_no_tls(tmp_path):
    found = _settings(tmp_path, *SECURITY, NOTEWIRE_URL="http://notes.lan:8000")
    assert "notes.lan" in found["ALLOWED_HOSTS"]
    assert found["CSRF_TRUSTED_ORIGINS"] == ["http://notes.lan:8000"]
    assert found["SESSION_COOKIE_SECURE"] is False
    assert found["SECURE_HSTS_SECONDS"] == 0


def test_settings_page_describes_exactly_what_is_read():
    rows = [
        line.split("|")[1:4]
        for line in (ROOT / "docs" / "settings.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    described = [name.strip().strip("`") for name, _, _ in rows]
    assert sorted(described) == sorted(env.names)
    assert all(default.strip() and text.strip() for _, default, text in rows)
