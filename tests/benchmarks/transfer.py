"""What an import and an export of many notes take: time, and memory at the peak.

    .venv/bin/python -m tests.benchmarks.transfer [--notes 100000]

Writes an archive of notes as Obsidian keeps them (1.3 kB of words as frequent as a language's, in
200 folders), then runs the commands on it in a data folder of its own: an import, the same import
again, an export, and the import of that export into another account. CPU and memory are
those of the command's process, PostgreSQL apart.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

from notes.transfer import zip_stream
from notes.transfer.zip_stream import File

ROOT = Path(__file__).resolve().parent.parent.parent
WORDS, FOLDERS = 20_000, 200


def files(count: int) -> Iterator[File]:
    chosen = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(chosen.choices(letters, k=chosen.randint(2, 9))) for _ in range(WORDS)]
    weights = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    began = datetime(2020, 1, 1, tzinfo=UTC)
    for number in range(count):
        text = chosen.choices(words, cum_weights=weights, k=200)
        for at in range(9, 200, 10):
            text[at] += ".\n"
        created = began + timedelta(minutes=number)
        head = f"---\ntags: [{text[0]}, {text[1]}]\ncreated: {created.isoformat()}\n---\n"
        body = (
            f"{head}# {' '.join(text[:3])}\n\n{' '.join(text)} #{text[2]} [[Note {number // 2}]]\n"
        )
        name = f"area {number % 10}/topic {number % FOLDERS}/Note {number}.md"
        yield File(name, body.encode(), created)


def command(*arguments: str, home: Path) -> tuple[float, float, float]:
    """Run ``manage.py``; seconds, those of its CPU, and MiB at the peak."""
    began = time.perf_counter()
    environment = os.environ | {"NOTEWIRE_HOME": str(home)}
    program = [sys.executable, str(ROOT / "manage.py"), *arguments]
    process = os.posix_spawn(sys.executable, program, environment)
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(f"{' '.join(arguments)} failed")
    cpu = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - began, cpu, usage.ru_maxrss / 1024


def measure(name: str, *arguments: str, home: Path) -> None:
    seconds, cpu, mib = command(*arguments, home=home)
    sys.stderr.write("\r")
    print(f"{name:36} {seconds:7.1f} s, {cpu:6.1f} s CPU, peak {mib:6.0f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=100_000)
    count = parser.parse_args().notes
    home = Path(tempfile.mkdtemp(prefix="notewire-transfer-"))
    home.chmod(0o711)
    archive, out = str(home / "vault.zip"), str(home / "out.zip")
    try:
        with Path(archive).open("wb") as target:
            zip_stream.write(files(count), target)
        command("migrate", "--verbosity", "0", home=home)
        for name in ("ada", "bea"):
            made = f"get_user_model().objects.create_user({name!r})"
            load = "from django.contrib.auth import get_user_model"
            command("shell", "--no-imports", "-c", f"{load}; {made}", home=home)
        measure("a command that does nothing", "notes_export", "bea", out, home=home)
        measure(f"import of {count:,} notes", "notes_import", "ada", archive, home=home)
        measure("the same import again", "notes_import", "ada", archive, home=home)
        measure("export of them", "notes_export", "ada", out, home=home)
        measure("import of the export by another", "notes_import", "bea", out, home=home)
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
