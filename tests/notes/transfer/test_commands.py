"""Import and export from a shell."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from notes.models import Note, NoteTransfer
from notes.transfer.importing import Import
from tests.notes.writing import note_create

from .conftest import packed


def run(*arguments: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command(*map(str, arguments), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


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
    out, _ = run("notes_import", "alice", vault)
    assert "refused: link.md: The file is a symbolic link." in out
    assert "1 created, 1 skipped, 1 refused" in out
    note = Note.objects.get()
    assert (note.title, note.folder, note.tags) == ("n", "/sub/", ["tag"])
    assert "1 unchanged" in run("notes_import", "alice", vault)[0]


def test_import_that_breaks_is_not_left_running(alice: User, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(Import, "step", lambda self: dict[str, bool]()["secret"])
    path = tmp_path / "a.zip"
    path.write_bytes(packed({"a.md": "x"}))
    with pytest.raises(KeyError):
        run("notes_import", "alice", path)
    assert NoteTransfer.objects.get().status == "failed"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["notes_import", "nobody", "x.zip"], "There is no user 'nobody'."),
        (["notes_import", "alice", "missing.zip"], "not here"),
        (["notes_import", "alice", __file__], "not a ZIP archive"),
        (["notes_export", "nobody", "x.zip"], "There is no user 'nobody'."),
        (["notes_export", "alice", "/missing/x.zip"], "cannot be written"),
        (["notes_export", "alice", "x.zip", "--folder", "/../"], "cannot be called"),
    ],
)
def test_mistake_is_told_in_one_line(alice: User, arguments: list[str], said: str):
    with pytest.raises(CommandError, match=said):
        run(*arguments)
