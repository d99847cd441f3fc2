"""The one place that reads the environment: every setting of an operator, checked and typed.

Values come from the environment or from the file `.env` beside `manage.py`; the environment wins.
An empty value counts as unset. A value that cannot be used ends the start with one line that
names it. `docs/settings.md` describes each; a test compares it with ``names``.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import SplitResult, urlsplit

import environ

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
TESTING = "pytest" in sys.modules
WHERE_TESTS_RUN = ("NOTEWIRE_HOME", "DATABASE_URL")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
DECISIONS = ("allow", "ask", "off")
#: Shorter ones can be guessed, and who guesses it is anybody.
SECRET_LENGTH = 32

#: Every name that is read below.
names: list[str] = []

_env = environ.Env()
if not TESTING:
    _env.read_env(ROOT / ".env")


def stop(reason: object) -> NoReturn:
    """End the start with one line and no traceback: the reader is an operator."""
    sys.exit(f"Notewire cannot start: {reason}")


def _read(name: str, default: str, parse: Callable[[str], T]) -> T:
    names.append(name)
    # A developer's keys and choices are no part of the tests.
    unset = TESTING and name not in WHERE_TESTS_RUN
    value = "" if unset else _env.str(name, "").strip()
    value = value or default
    try:
        return parse(value)
    except ValueError as error:
        shown = "what is set" if name.endswith(("_KEY", "DATABASE_URL")) else repr(value)
        stop(f"{name} {error}, not {shown}.")


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", value) or not low <= int(value) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(value)

    return parse


def _switch(value: str) -> bool:
    if value.lower() not in ("on", "off", "true", "false", "yes", "no", "1", "0"):
        raise ValueError("must be on or off")
    return value.lower() in ("on", "true", "yes", "1")


def _level(value: str) -> str:
    if value.upper() not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}")
    return value.upper()


def _address(value: str) -> str:
    """The URL of a server somewhere, without a slash at its end; empty where there is none."""
    if not value:
        return ""
    url = _web_url(value)
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("must be a URL without a password, ? or #")
    return url.geturl().rstrip("/")


def _key(value: str) -> str:
    """A key as it can stand in a header."""
    if not re.fullmatch(r"[!-~]*", value):
        raise ValueError("must be a key: letters, digits and signs without spaces")
    return value


def _own_url(value: str) -> SplitResult | None:
    if not value:
        return None
    url = _web_url(value)
    if url.path.strip("/") or url.query or url.fragment or url.username:
        raise ValueError("must be of the form https://notes.example.org, without a path")
    return url


def _web_url(value: str) -> SplitResult:
    url = urlsplit(value)
    try:
        usable = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:  # the port is none
        usable = False
    if not usable or re.search(r"\s", value):
        raise ValueError("must be a URL that begins with http:// or https://")
    return url


def _decisions(value: str) -> dict[str, str]:
    """``note_update=ask,external=off``: a tool or an effect, and what is decided for it."""
    decisions: dict[str, str] = {}
    for entry in filter(None, map(str.strip, value.split(","))):
        name, _, decision = (part.strip() for part in entry.partition("="))
        if not name.isidentifier() or decision not in DECISIONS or name in decisions:
            raise ValueError("must be a list like note_update=ask,external=off")
        decisions[name] = decision
    return decisions


def _approval_mode(value: str) -> str:
    if value not in ("", "careful"):
        raise ValueError("must be careful, or empty so that each person chooses")
    return value


def _postgres(value: str) -> dict[str, Any] | None:
    """Django's settings for a ``postgres://`` URL; None where PostgreSQL is to be embedded."""
    if not value:
        return None
    if urlsplit(value).scheme not in ("postgres", "postgresql"):
        raise ValueError("must begin with postgres://")
    database = dict(environ.Env.db_url_config(value))
    if not database["NAME"]:
        raise ValueError("must name a database, as in postgres://user:password@host:5432/name")
    return database


def _home(value: str) -> Path:
    """The data folder, made if need be: closed to others, but for root one that lets them pass.

    PostgreSQL does not run as root, and what runs it in root's place has to get to its files.
    """
    path = Path(value).expanduser()
    path = path if path.is_absolute() else ROOT / path
    try:
        if not path.exists():
            path.mkdir(parents=True)
            path.chmod(0o700 if os.geteuid() else 0o711)
    except OSError as error:
        raise ValueError(f"must be a folder that can be made and written ({error})") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ValueError("must be a folder that can be written")
    return path.resolve()


def _secret_key(value: str) -> str:
    if value and len(value) < SECRET_LENGTH:
        raise ValueError(f"must have at least {SECRET_LENGTH} characters, or be left unset")
    return value or _kept_secret(NOTEWIRE_HOME / "secret_key")


def _kept_secret(path: Path) -> str:
    """The secret in ``path``, made at first use. Two processes may start at once: linking a
    complete file under the name is what only one of them can do."""
    if not path.exists():
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(50))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    secret = path.read_text().strip()
    if len(secret) < 40:
        stop(f"{path} is damaged: delete it and everyone has to log in again.")
    return secret


def hand_on(name: str, value: str) -> None:
    """Set a variable for the processes that this one starts."""
    os.environ[name] = value


def inherited(*, without: str) -> dict[str, str]:
    """The environment for another program, less the variables that begin with ``without``."""
    return {key: value for key, value in os.environ.items() if not key.startswith(without)}


NOTEWIRE_HOME = _read("NOTEWIRE_HOME", "var", _home)
DATABASE_URL = _read("DATABASE_URL", "", _postgres)
SECRET_KEY = _read("SECRET_KEY", "", _secret_key)
HOST = _read("HOST", "127.0.0.1", str)
PORT = _read("PORT", "8000", _integer(0, 65535))
NOTEWIRE_URL = _read("NOTEWIRE_URL", "", _own_url)
NOTEWIRE_WORKER = _read("NOTEWIRE_WORKER", "on", _switch)
NOTEWIRE_LOG_LEVEL = _read("NOTEWIRE_LOG_LEVEL", "INFO", _level)
NOTEWIRE_METRICS_TOKEN = _read("NOTEWIRE_METRICS_TOKEN", "", str)

NOTEWIRE_DEFAULT_MODEL = _read("NOTEWIRE_DEFAULT_MODEL", "", str)
NOTEWIRE_DEMO = _read("NOTEWIRE_DEMO", "on", _switch)
NOTEWIRE_TOOL_POLICY = _read("NOTEWIRE_TOOL_POLICY", "", _decisions)
NOTEWIRE_APPROVAL_MODE = _read("NOTEWIRE_APPROVAL_MODE", "", _approval_mode)
NOTEWIRE_APPROVAL_DAYS = _read("NOTEWIRE_APPROVAL_DAYS", "7", _integer(1, 365))
NOTEWIRE_HISTORY_BYTES = _read(
    "NOTEWIRE_HISTORY_BYTES", str(200 * 1024), _integer(4 * 1024, 16 * 1024 * 1024)
)
NOTEWIRE_RUN_TOKENS = _read("NOTEWIRE_RUN_TOKENS", "1000000", _integer(1000, 1_000_000_000))
NOTEWIRE_GATHER_MS = _read("NOTEWIRE_GATHER_MS", "40", _integer(0, 1000))

OPENAI_API_KEY = _read("OPENAI_API_KEY", "", _key)
OPENAI_BASE_URL = _read("OPENAI_BASE_URL", "", _address)
ANTHROPIC_API_KEY = _read("ANTHROPIC_API_KEY", "", _key)
ANTHROPIC_BASE_URL = _read("ANTHROPIC_BASE_URL", "", _address)
OPENROUTER_API_KEY = _read("OPENROUTER_API_KEY", "", _key)
VENICE_API_KEY = _read("VENICE_API_KEY", "", _key)
GROQ_API_KEY = _read("GROQ_API_KEY", "", _key)
MISTRAL_API_KEY = _read("MISTRAL_API_KEY", "", _key)
DEEPSEEK_API_KEY = _read("DEEPSEEK_API_KEY", "", _key)
GEMINI_API_KEY = _read("GEMINI_API_KEY", "", _key)
OLLAMA_BASE_URL = _read("OLLAMA_BASE_URL", "", _address)
LMSTUDIO_BASE_URL = _read("LMSTUDIO_BASE_URL", "", _address)
LLAMACPP_BASE_URL = _read("LLAMACPP_BASE_URL", "", _address)
