"""Import and export from a shell."""

from __future__ import annotations

import io
import os
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections

from accounts.models import User
from notes.models import Note, NoteTransfer
from notes.transfer import services
from notes.transfer.importing import Import
from tests.notes.writing import note_create

from .conftest import packed


def run(*arguments: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command(*map(str, arguments), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def run_failing(*arguments: Any) -> tuple[str, str]:
    """What was said, and why the command ended with 1."""
    out = io.StringIO()
    with pytest.raises(CommandError) as failed:
        call_command(*map(str, arguments), stdout=out, stderr=io.StringIO())
    assert failed.value.returncode == 1
    return out.getvalue(), str(failed.value)


def test_export_and_import_from_a_shell(alice: User, mallory: User, tmp_path: Path):
    note_create(owner=alice, title="A", folder="/x/", tags=["t"])
    note_create(owner=alice, title="B")
    note_create(owner=mallory, title="Hers")
    target = tmp_path / "notes.zip"
    _, told = run("notes_export", "alice", target)
    assert f"2 notes are in {target}." in told
    with zipfile.ZipFile(target) as archive:
        assert sorted(archive.namelist()) == ["B.md", "x/A.md"]
    run("notes_export", "alice", target, "--folder", "/x/")
    with zipfile.ZipFile(target) as archive:
        assert archive.namelist() == ["x/A.md"]

    out, _ = run("notes_import", "mallory", target, "--folder", "/from alice/")
    assert out.endswith(": 1 created.\n")
    assert Note.objects.get(owner=mallory, title="A").folder == "/from alice/x/"
    assert not list(tmp_path.glob("*.tmp"))


def test_folder_is_imported_with_a_report(alice: User, tmp_path: Path):
    vault = tmp_path / "vault"
    (vault / "sub").mkdir(parents=True)
    (vault / "sub" / "n.md").write_text("hello #tag")
    (vault / "p.png").write_bytes(b"\x89PNG")
    (vault / "link.md").symlink_to("/etc/passwd")
    out, failed = run_failing("notes_import", "alice", vault)
    assert failed == "Not everything is imported: 1 refused."
    assert "refused: link.md: The file is a symbolic link." in out
    assert "1 created, 1 skipped, 1 refused" in out
    note = Note.objects.get()
    assert (note.title, note.folder, note.tags) == ("n", "/sub/", ["tag"])
    (vault / "link.md").unlink()
    assert "1 unchanged" in run("notes_import", "alice", vault)[0]


def test_import_that_breaks_is_not_left_running(alice: User, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(Import, "step", lambda self: dict[str, bool]()["secret"])
    path = tmp_path / "a.zip"
    path.write_bytes(packed({"a.md": "x"}))
    with pytest.raises(KeyError):
        run("notes_import", "alice", path)
    assert NoteTransfer.objects.get().status == "failed"


@pytest.mark.django_db(transaction=True)
def test_import_whose_command_was_killed_ends_as_failed(alice: User):
    held, go_on = threading.Event(), threading.Event()

    def command() -> None:
        try:
            services.transfer_record(owner=alice, name="x", folder="/", overwrite=False, total=1)
            held.set()
            go_on.wait(30)
        finally:
            session = connection.connection
            connections.close_all()
            session.close()  # the pool would keep it

    running = threading.Thread(target=command)
    running.start()
    assert held.wait(30)
    services.transfers_end_lost()
    assert NoteTransfer.objects.get().status == "running"
    go_on.set()
    running.join()
    deadline = time.monotonic() + 30
    while (transfer := NoteTransfer.objects.get()).is_active and time.monotonic() < deadline:
        services.transfers_end_lost()
    assert (transfer.status, transfer.error) == (
        "failed",
        "The command that imported was ended. Start it again: that is safe.",
    )


@pytest.mark.django_db(transaction=True)
def test_import_of_a_job_is_left_to_its_job(alice: User):
    NoteTransfer.objects.create(owner=alice, status="running", file="x.zip")
    NoteTransfer.objects.create(owner=alice, status="queued", file="y.zip")
    services.transfers_end_lost()
    assert not NoteTransfer.objects.filter(status="failed").exists()


def test_export_never_takes_the_place_of_a_pipe_or_device(alice: User, tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    _, failed = run_failing("notes_export", "alice", pipe)
    assert failed == f"{pipe} cannot be written: it is not a regular file."
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["notes_import", "nobody", "x.zip"], "There is no user 'nobody'."),
        (["notes_import", "alice", "missing.zip"], "There is no such file"),
        (["notes_import", "alice", ""], "There is no name"),
        (["notes_import", "alice", __file__], "not a ZIP archive"),
        (["notes_export", "nobody", "x.zip"], "There is no user 'nobody'."),
        (["notes_export", "alice", "/missing/x.zip"], "cannot be written"),
        (["notes_export", "alice", "x" * 300], "cannot be written"),
        (["notes_export", "alice", "."], "not a regular file"),
        (["notes_export", "alice", "x.zip", "--folder", "/../"], "cannot be called"),
        (["notes_export", "alice", "x.zip", "--folder", "/nope/"], "There are no such notes"),
        (["notes_export", "alice", "x.zip", "--tag", "nope"], "There are no such notes"),
    ],
)
def test_mistake_is_told_in_one_line(alice: User, arguments: list[str], said: str):
    with pytest.raises(CommandError, match=said):
        run(*arguments)
