"""``manage.py serve`` as an operator meets it: one process started from outside, then stopped."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import pytest

from config import env

pytestmark = pytest.mark.server

ROOT = Path(__file__).resolve().parents[2]
BEHIND_PROXY = {
    "Host": "notes.example.org",
    "X-Forwarded-Proto": "https",
    "Origin": "https://notes.example.org",
    "Referer": "https://notes.example.org/login/",
}


class Serving:
    """A started server: what it printed, where it answers."""

    def __init__(self, home: Path, *options: str, **variables: str) -> None:
        clean = {name: value for name, value in os.environ.items() if name not in env.names}
        self.home = home
        self.output = ""
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", *options],
            cwd=ROOT,
            env=clean | {"NOTEWIRE_HOME": str(home), "PORT": "0"} | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def answering(self) -> Serving:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line
            if line.startswith("Stop with"):
                break
        addresses = re.findall(r"(?:Notewire:|Listening on) (http://\S+)", self.output)
        assert addresses, self.output
        self.url = addresses[-1]
        # What is printed is there, with however many processes: nobody has to wait for it.
        assert httpx.get(f"{self.url}/readyz", timeout=10).status_code == 200
        return self

    def database_number(self) -> int:
        """The embedded server's process; 0 while there is none."""
        try:
            return int((self.home / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return 0

    def stop(self, number: int = signal.SIGTERM) -> str:
        """Stop it in order; everything it printed."""
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return self.output + rest

    def database_runs(self) -> bool:
        return (self.home / "postgres" / "postmaster.pid").exists()


@pytest.fixture(scope="module")
def home():
    """A data folder that every account can reach, used by all tests here."""
    home = Path(tempfile.mkdtemp(dir="/tmp"))
    home.chmod(0o755)
    yield home
    shutil.rmtree(home)


@pytest.fixture
def serve(home):
    started: list[Serving] = []

    def start(*options: str, **variables: str) -> Serving:
        started.append(Serving(home, *options, **variables))
        return started[-1]

    yield start
    for serving in started:
        if serving.process.poll() is None:
            serving.process.terminate()
            serving.process.communicate(timeout=60)


def _wait_until(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.05)


def test_serve_prepares_everything_and_stops_in_order(serve):
    serving = serve().answering()
    first_account = re.search(r"first account: (http://\S+)", serving.output)
    assert first_account
    assert httpx.get(first_account.group(1)).status_code == 200
    page = httpx.get(f"{serving.url}/login/")
    assert page.status_code == 200
    stylesheet = re.search(r'href="(/static/\S+\.[0-9a-f]{12}\.css)"', page.text)
    assert stylesheet, page.text
    answer = httpx.get(serving.url + stylesheet.group(1), headers={"Accept-Encoding": "gzip"})
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-encoding"] == "gzip"
    assert serving.database_runs()
    said = serving.stop()
    assert "Traceback" not in said and "Warning" not in said, said
    assert not serving.database_runs()


def test_second_start_has_nothing_to_prepare(serve):
    serve().answering().stop()
    serving = serve().answering()
    assert "up to date" not in serving.output
    assert "static files" not in serving.output
    assert "Traceback" not in serving.stop(signal.SIGINT)
    assert not serving.database_runs()


def test_killed_server_leaves_a_database_that_the_next_start_takes_over(serve):
    serving = serve("--no-worker").answering()
    serving.process.kill()
    serving.process.communicate()
    assert serving.database_runs()
    following = serve("--no-worker").answering()
    following.stop()
    assert not following.database_runs()


def test_database_that_is_killed_is_started_again_under_a_server(serve):
    serving = serve("--no-worker").answering()
    killed = serving.database_number()
    os.kill(killed, signal.SIGKILL)
    _wait_until(lambda: serving.database_number() not in (0, killed))
    _wait_until(lambda: httpx.get(f"{serving.url}/readyz", timeout=20).status_code == 200)
    said = serving.stop()
    assert said.count("had died and is started again") == 1
    assert not serving.database_runs()


def test_outage_is_told_soon_and_ends_by_itself(serve):
    serving = serve().answering()
    bearer = {"Authorization": f"Bearer nw_{'x' * 40}"}
    cookie = {"Cookie": f"sessionid={'x' * 32}", "Accept": "text/html"}
    with (serving.home / "postgres.lock").open("a") as starts:
        fcntl.flock(starts, fcntl.LOCK_EX)  # nobody starts it again meanwhile
        os.kill(serving.database_number(), signal.SIGKILL)
        for _ in range(20):
            answer = httpx.get(f"{serving.url}/api/account/", headers=bearer, timeout=30)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert answer.json()["error"]["code"] == "database_unavailable"
        page = httpx.get(f"{serving.url}/", headers=cookie, timeout=30)
        assert (page.status_code, page.headers["retry-after"]) == (503, "5")
        assert page.headers["content-type"].startswith("text/html")
        assert "The database does not answer" in page.text
    _wait_until(lambda: httpx.get(f"{serving.url}/readyz", timeout=20).status_code == 200)
    assert httpx.get(f"{serving.url}/api/account/", headers=bearer).status_code == 401
    said = serving.stop()
    assert said.count("The database cannot be reached") == 1
    assert said.count("The database can be reached again") == 1
    assert "Traceback" not in said
    assert len(said.splitlines()) < 40


def test_several_processes_answer_and_stop_together(serve):
    serving = serve("--workers", "2", NOTEWIRE_METRICS_TOKEN="secret").answering()
    headers = {"Authorization": "Bearer secret"}
    assert httpx.get(f"{serving.url}/readyz", headers=headers).json()["worker"] == "running"
    assert "Traceback" not in serving.stop()
    assert not serving.database_runs()


def test_several_processes_stop_when_their_supervisor_is_killed(serve):
    serving = serve("--workers", "2", "--no-worker").answering()
    serving.process.kill()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{serving.url}/healthz", timeout=5)
        except httpx.TransportError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("somebody still answers")
    serving.process.communicate(timeout=30)


def test_first_post_behind_a_proxy_with_tls_works(serve):
    serving = serve("--no-worker", NOTEWIRE_URL="https://notes.example.org").answering()
    assert "https://notes.example.org/setup/" in serving.output
    page = httpx.get(f"{serving.url}/login/", headers=BEHIND_PROXY)
    assert "Secure" in page.headers["set-cookie"]
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token
    answer = httpx.post(
        f"{serving.url}/login/",
        data={"csrfmiddlewaretoken": token.group(1), "username": "x", "password": "y"},
        headers=BEHIND_PROXY | {"Cookie": f"csrftoken={page.cookies['csrftoken']}"},
    )
    assert answer.status_code == 200  # the form again: the password is wrong, the origin is not
    foreign = BEHIND_PROXY | {"Host": "evil.example.org"}
    assert httpx.get(f"{serving.url}/login/", headers=foreign).status_code == 400


def test_worker_can_be_left_to_others(serve):
    serving = serve("--no-worker", NOTEWIRE_METRICS_TOKEN="secret").answering()
    headers = {"Authorization": "Bearer secret"}
    assert httpx.get(f"{serving.url}/readyz", headers=headers).json()["worker"] == "none"


def test_port_in_use_is_said_in_one_line(serve):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = serve("--port", port).process
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"Cannot listen on 127.0.0.1 port {port}" in said
    assert "Traceback" not in said


def test_host_that_is_none_is_said_before_anything_is_prepared():
    home = Path(tempfile.mkdtemp(dir="/tmp"))
    home.chmod(0o755)
    process = Serving(home, HOST="no-such-host.invalid").process
    said, _ = process.communicate(timeout=60)
    shutil.rmtree(home)
    assert process.returncode == 1
    assert "Cannot listen on no-such-host.invalid port 0" in said
    assert "up to date" not in said and "Traceback" not in said


def test_default_model_of_a_provider_that_is_not_there_stops_the_start(serve):
    process = serve(NOTEWIRE_DEFAULT_MODEL="groq/llama").process
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "NOTEWIRE_DEFAULT_MODEL: Groq is not configured: set GROQ_API_KEY" in said
    assert "Traceback" not in said


def test_database_that_is_away_is_said_in_one_line(serve):
    process = serve(DATABASE_URL="postgres://nobody@127.0.0.1:9/none").process
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "The database cannot be reached" in said
    assert "refused" in said and "DATABASE_URL" in said
    assert "Traceback" not in said


def test_policy_for_an_unknown_tool_stops_a_start_that_has_nothing_to_migrate(serve):
    serve().answering().stop()
    process = serve(NOTEWIRE_TOOL_POLICY="note_updte=ask").process
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "NOTEWIRE_TOOL_POLICY: 'note_updte' is neither a tool nor an effect" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_number_of_processes_is_refused_below_one(serve, number):
    process = serve(f"--workers={number}").process
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "argument --workers: a whole number from 1" in said
