"""From a clean checkout to a command: what bootstrap.py installs, when, and what it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bootstrap

ROOT = Path(__file__).resolve().parents[1]


class Machine:
    """A checkout in which nothing is installed; what would be run is written down."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.failing = ""

    def call(self, command, **options) -> int:
        self.calls.append([str(part) for part in command])
        if "venv" in command:
            Path(bootstrap.PYTHON).parent.mkdir(parents=True)
            Path(bootstrap.PYTHON).touch()
        return int(bool(self.failing) and self.failing in self.calls[-1])

    def installed(self) -> list[str]:
        """The locks that were installed since the last look."""
        locks = [call[-1].removeprefix("requirements/") for call in self.calls if "sync" in call]
        self.calls.clear()
        return locks


@pytest.fixture
def machine(monkeypatch, tmp_path):
    machine = Machine()
    venv = tmp_path / ".venv"
    requirements = tmp_path / "requirements"
    requirements.mkdir()
    (requirements / "base.txt").write_text("django==5.2")
    (requirements / "dev.txt").write_text("django==5.2 pytest==9")
    (requirements / "matrix.txt").write_text("django==5.2 pytest==9 llmock==1")
    monkeypatch.chdir(tmp_path)  # where the commands go, and back again afterwards
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "REQUIREMENTS", requirements)
    monkeypatch.setattr(bootstrap, "VENV", venv)
    monkeypatch.setattr(bootstrap, "STAMP", venv / ".installed")
    monkeypatch.setattr(bootstrap, "PYTHON", str(venv / "bin" / "python"))
    monkeypatch.setattr(subprocess, "call", machine.call)
    monkeypatch.setattr(os, "umask", lambda mask: 0)
    return machine


def test_install_happens_once(machine):
    bootstrap.install("base")
    assert machine.installed() == ["base.txt"]
    bootstrap.install("base")
    assert machine.calls == []


def test_stamp_of_an_unknown_lock_is_replaced(machine):
    bootstrap.install("base")
    stamp = json.loads(bootstrap.STAMP.read_text())
    bootstrap.STAMP.write_text(json.dumps(stamp | {"lock": "former"}))
    machine.installed()
    bootstrap.install("base")
    assert machine.installed() == ["base.txt"]


def test_install_requires_hashes(machine):
    bootstrap.install("base")
    (sync,) = [call for call in machine.calls if "sync" in call]
    assert "--require-hashes" in sync


def test_changed_lock_is_installed_again(machine):
    bootstrap.install("base")
    machine.installed()
    (bootstrap.REQUIREMENTS / "base.txt").write_text("django==5.3")
    bootstrap.install("base")
    assert machine.installed() == ["base.txt"]


def test_run_and_test_do_not_take_turns_installing(machine):
    bootstrap.install("base")
    bootstrap.install("dev")
    machine.installed()
    bootstrap.install("base")
    bootstrap.install("dev")
    assert machine.calls == []


def test_other_python_makes_the_environment_anew(machine):
    bootstrap.install("base")
    stamp = json.loads(bootstrap.STAMP.read_text())
    bootstrap.STAMP.write_text(json.dumps(stamp | {"python": "3.10.0"}))
    machine.calls.clear()
    bootstrap.install("base")
    assert any("venv" in call for call in machine.calls)
    assert machine.installed() == ["base.txt"]


@pytest.mark.parametrize(
    ("failing", "advice"), [("venv", "apt install python3-venv"), ("sync", "run the same command")]
)
def test_failure_says_what_to_do_and_is_tried_again(machine, capsys, failing, advice):
    machine.failing = failing
    with pytest.raises(SystemExit) as stopped:
        bootstrap.install("base")
    assert stopped.value.code == 1
    assert advice in " ".join(capsys.readouterr().err.split())
    machine.failing = ""
    machine.calls.clear()
    bootstrap.install("base")
    assert machine.installed() == ["base.txt"]


def test_old_python_is_told_the_version_it_needs(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    assert bootstrap.main("run") == 1
    assert "Python 3.11 or newer" in capsys.readouterr().err


def test_script_can_be_read_by_an_old_python_to_say_so():
    import ast

    ast.parse((ROOT / "bootstrap.py").read_text(), feature_version=(3, 7))


def test_check_runs_everything_whatever_fails_and_says_so(machine, capsys):
    machine.failing = "ruff"
    assert bootstrap.check({"Tests": ["-x"]}) == 1
    assert [call[1:3] for call in machine.calls] == [
        ["-m", "ruff"],
        ["-m", "ruff"],
        ["-m", "mypy"],
        ["manage.py", "makemigrations"],
        ["-m", "pytest"],
    ]
    assert machine.calls[-1][-1] == "-x"
    said = capsys.readouterr().out
    assert "FAILED  Lint" in said and "passed  Tests" in said


def test_check_is_green_when_all_is(machine):
    assert bootstrap.check(bootstrap.TESTS) == 0


def test_every_test_is_in_one_part_of_the_whole_run(machine):
    assert bootstrap.main("test") == 0
    selections = [call[call.index("-m", 3) + 1] for call in machine.calls if "pytest" in call]
    assert selections == [f"not ({bootstrap.APART})", bootstrap.APART]


def test_options_are_for_one_run_of_the_tests(machine):
    assert bootstrap.main("test", "tests/notes", "-x") == 0
    assert [call[3:] for call in machine.calls if "pytest" in call] == [["tests/notes", "-x"]]


def test_quick_leaves_out_what_takes_long(machine):
    assert bootstrap.main("quick") == 0
    assert "not (server or browser or matrix or thorough)" in machine.calls[-1]


def test_whole_test_run_has_the_foreign_servers(machine):
    assert bootstrap.main("test") == 0
    assert machine.installed() == ["matrix.txt"]


def test_unknown_command_lists_the_commands(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert bootstrap.main("dance") == 2
    assert "manage ARGUMENTS" in capsys.readouterr().out


@pytest.mark.parametrize("name", bootstrap.LOCKS)
def test_locks_are_hashed_and_name_no_host(name):
    lock = (ROOT / "requirements" / f"{name}.txt").read_text()
    pins = re.findall(r"^[a-z0-9][\w.-]*(?:\[[\w,-]+\])?==", lock, re.MULTILINE)
    assert len(pins) > 40
    assert lock.count("--hash=sha256:") >= len(pins)
    assert not re.search(r"https?://|--index-url|--find-links", lock)


def test_locks_agree_on_what_runs():
    def pins(name: str) -> set[str]:
        lock = (ROOT / "requirements" / f"{name}.txt").read_text()
        return set(re.findall(r"^([a-z0-9][\w.-]*==\S+)", lock, re.MULTILINE))

    assert pins("base") <= pins("dev") <= pins("matrix")


@pytest.mark.parametrize("target", ["run", "test", "quick", "lock"])
def test_make_is_thin_over_the_script(target):
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target, "PYTHON=some-python", "ARGS="],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},  # not that of a make around this test
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["some-python", "bootstrap.py", target]


def test_ci_requires_the_browser_and_is_executable():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "NOTEWIRE_REQUIRE_BROWSER=1" in script.read_text()
    subprocess.run(["sh", "-n", script], check=True)


def test_recorded_streams_keep_their_bytes():
    done = subprocess.run(
        ["git", "check-attr", "text", "--", "tests/any/stream.sse"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip("not in a git checkout")
    assert done.stdout.strip().endswith("text: unset")


@pytest.mark.thorough
def test_management_commands_start_without_heavy_imports():
    """Starting is what a person waits for; what needs these imports them where it is used."""
    code = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
os.environ["DATABASE_URL"] = "postgres://nobody@127.0.0.1:9/none"
import django
django.setup()
print(*sorted({"mcp", "playwright", "pytest"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "", done.stdout
