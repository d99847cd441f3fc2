"""What a hostile or broken archive may do: nothing, file by file."""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from notes.models import Note
from notes.rules import MAX_CONTENT_BYTES
from notes.transfer import archive as reading
from notes.transfer.archive import UPLOAD, FolderSource, Limits, ZipSource
from notes.transfer.exceptions import ArchiveUnreadable

from .conftest import Importer, imported, outcomes, packed, reason


def info(name: str, *, mode: int = 0, date: tuple[int, ...] = (2024, 5, 6, 7, 8, 9)) -> Any:
    made = zipfile.ZipInfo("x", date)  # type: ignore[arg-type]
    made.filename = name
    made.external_attr = mode << 16
    return made


HOSTILE = [
    ("/etc/passwd.md", "absolute"),
    ("//server/share/a.md", "absolute"),
    ("\\\\server\\a.md", "absolute"),
    ("../up.md", ".."),
    ("a/../../up.md", ".."),
    ("a\\..\\..\\up.md", ".."),
    ("C:/windows/a.md", "drive"),
    ("c:a.md", "drive"),
    ("tab\there.md", "control characters"),
    ("line\nbreak.md", "control characters"),
    ("a" * 2001 + ".md", "2000 characters"),
    ("/".join("d" * 33) + "/deep.md", "32 folders"),
    ("f" * 1001 + "/long.md", "1000 characters"),
]


@pytest.mark.parametrize(("name", "why"), HOSTILE)
def test_name_that_is_more_than_a_name_is_refused_and_the_rest_imported(
    alice: User, do_import: Importer, name: str, why: str
):
    transfer = do_import(alice, [("good.md", "good"), (info(name), "evil"), ("last.md", "last")])
    assert (transfer.status, transfer.files_created, transfer.files_refused) == ("finished", 2, 1)
    assert why in transfer.files.get(outcome="refused").reason
    assert set(Note.objects.values_list("title", flat=True)) == {"good", "last"}


def test_null_character_in_a_name_is_refused(alice: User, do_import: Importer):
    data = packed([("aXb.md", "evil"), ("good.md", "good")]).replace(b"aXb.md", b"a\0b.md")
    transfer = do_import(alice, data)
    assert "null character" in transfer.files.get(outcome="refused").reason
    assert Note.objects.get().title == "good"


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        (stat.S_IFLNK | 0o777, "symbolic link"),
        (stat.S_IFIFO | 0o644, "regular file"),
        (stat.S_IFBLK | 0o644, "regular file"),
    ],
)
def test_entry_that_is_no_file_is_refused(alice: User, do_import: Importer, mode: int, why: str):
    transfer = do_import(alice, [(info("link.md", mode=mode), "/etc/passwd"), ("good.md", "x")])
    assert why in reason(transfer, "link.md")
    assert outcomes(transfer)["good.md"] == "created"


@pytest.mark.parametrize(
    "names",
    [
        ("Note.md", "note.md"),
        ("a/Note.md", "A/note.MD"),
        ("caf\u00e9.md", "cafe\u0301.md"),
        ("same.md", "./same.md"),
        ("same.md", "same.md"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_second_of_two_names_that_some_system_takes_for_one_is_refused(
    alice: User, do_import: Importer, names: tuple[str, str]
):
    transfer = do_import(alice, [(names[0], "first"), (names[1], "second"), ("other.md", "o")])
    assert [file.outcome for file in transfer.files.all()] == ["created", "refused", "created"]
    assert set(Note.objects.values_list("content", flat=True)) == {"first", "o"}


def test_names_that_differ_in_more_than_case_are_two(alice: User, do_import: Importer):
    transfer = do_import(alice, {"Stra\u00dfe.md": "1", "Strasse.md": "2", "Strase.md": "3"})
    assert transfer.files_created == 3


def test_encrypted_entry_is_said_to_be_encrypted(alice: User, do_import: Importer):
    data = bytearray(packed([("secret.md", "s"), ("good.md", "good")]))
    for mark, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.find(mark) + offset] |= 1
    transfer = do_import(alice, bytes(data))
    assert reason(transfer, "secret.md") == "The file is encrypted."
    assert outcomes(transfer)["good.md"] == "created"


def test_damaged_entry_is_refused_and_the_rest_imported(alice: User, do_import: Importer):
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        archive.writestr("bad.md", "AAAA")
        archive.writestr("good.md", "good")
    transfer = do_import(alice, stored.getvalue().replace(b"AAAA", b"AAAB"))
    assert outcomes(transfer) == {"bad.md": "refused", "good.md": "created"}
    assert "damaged" in reason(transfer, "bad.md")


def test_packing_that_is_not_supported_is_said(alice: User, do_import: Importer):
    data = bytearray(packed([("odd.md", "s")]))
    for mark, offset in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        data[data.find(mark) + offset] = 97
    assert "not supported" in reason(do_import(alice, bytes(data)), "odd.md")


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packing_that_unpacks_all_at_once_is_refused_unread(
    alice: User, do_import: Importer, monkeypatch, packing: int
):
    monkeypatch.setattr(zipfile.ZipExtFile, "_read1", lambda file, size: pytest.fail("it was read"))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", packing) as archive:
        archive.writestr("bomb.md", bytes(1_000_000))
    transfer = do_import(alice, target.getvalue())
    assert outcomes(transfer) == {"bomb.md": "refused"}
    assert "not supported" in reason(transfer, "bomb.md")


def test_file_longer_than_a_note_is_not_read_to_its_end(alice: User, do_import: Importer):
    transfer = do_import(alice, {"big.md": b"a" * (MAX_CONTENT_BYTES + 200_000), "good.md": "g"})
    assert outcomes(transfer) == {"big.md": "refused", "good.md": "created"}


def test_size_that_the_directory_lies_about_is_not_believed(alice: User, do_import: Importer):
    data = bytearray(packed([("a.md", "b" * 5000)]))
    at = data.find(b"PK\1\2") + 24
    data[at : at + 4] = struct.pack("<I", 10)
    transfer = do_import(alice, bytes(data))
    assert outcomes(transfer) == {"a.md": "refused"}


def test_archive_that_unpacks_to_far_more_than_itself_is_stopped(
    alice: User, tmp_path: Path, monkeypatch
):
    limits = Limits(entries=100, directory_bytes=10_000, total_bytes=10**9, free_bytes=50_000)
    monkeypatch.setattr("tests.notes.transfer.conftest.UPLOAD", limits)
    files = {f"{number}.md": b"0" * 40_000 for number in range(40)}
    transfer = imported(alice, packed(files), tmp_path / "bomb.zip")
    size = (tmp_path / "bomb.zip").stat().st_size
    assert transfer.files_created == max(size * 100, 50_000) // 40_000
    assert transfer.files_created + transfer.files_refused == 40
    assert "unpacks to far more" in transfer.files.filter(outcome="refused")[0].reason


def test_attachments_are_not_unpacked_at_all(alice: User, do_import: Importer, monkeypatch):
    monkeypatch.setattr(reading, "_read", lambda entry: pytest.fail(f"{entry.path} was read"))
    transfer = do_import(alice, {"p.png": b"\x89PNG" + bytes(10_000), ".obsidian/app.json": "{}"})
    assert set(outcomes(transfer).values()) == {"skipped"}
    assert "attachment" in reason(transfer, "p.png")


def test_too_many_entries_or_too_large_a_directory_refuse_the_archive(tmp_path: Path):
    path = tmp_path / "many.zip"
    path.write_bytes(packed({f"{number}.md": "" for number in range(20)}))
    with pytest.raises(ArchiveUnreadable, match="at most 19 entries"):
        ZipSource(path, Limits(entries=19, directory_bytes=10_000, total_bytes=1))
    with pytest.raises(ArchiveUnreadable, match="directory is larger"):
        ZipSource(path, Limits(entries=20, directory_bytes=500, total_bytes=1))


def test_names_of_macos_are_read_though_they_do_not_say_that_they_are_utf8(
    alice: User, do_import: Importer
):
    data = packed([("XXXXX.md", "k")]).replace(b"XXXXX", "caf\u00e9".encode())
    assert outcomes(do_import(alice, data)) == {"caf\u00e9.md": "created"}


def test_backslashes_of_windows_part_folders(alice: User, do_import: Importer):
    names = ["folder\\", "folder\\sub\\", "folder\\sub\\a.md"]
    transfer = do_import(alice, [(info(name), "x" * name.endswith(".md")) for name in names])
    assert outcomes(transfer) == {"folder\\sub\\a.md": "created"}
    assert Note.objects.get().folder == "/folder/sub/"


def test_names_in_an_old_code_page_are_read(alice: User, do_import: Importer):
    data = packed([("XXXX.md", "k")]).replace(b"XXXX", "caf\u00e9".encode("cp437"))
    assert outcomes(do_import(alice, data)) == {"caf\u00e9.md": "created"}


def test_entry_whose_name_is_not_the_utf8_that_it_says_is_refused_alone(
    alice: User, do_import: Importer
):
    names = ["\u00c4\u00c4.md", "\u00d6.md", "plain.md"]
    data = packed([(name, name) for name in names])
    transfer = do_import(alice, data.replace("\u00c4".encode(), b"\xff\xfe"))
    assert list(outcomes(transfer).values()) == ["refused", "created", "created"]
    assert transfer.files.filter(reason="The name is said to be UTF-8, and is not.").count() == 1
    assert set(Note.objects.values_list("title", flat=True)) == {"\u00d6", "plain"}


def test_archive_in_an_archive_is_read_as_it_is(tmp_path: Path):
    inner = packed([("\u00c4.md", "x")]).replace("\u00c4".encode(), b"\xff\xfe")
    directory = inner[inner.index(b"PK\1\2") :]
    (tmp_path / "a.zip").write_bytes(packed([(info("a.md"), directory)]))
    source = ZipSource(tmp_path / "a.zip", UPLOAD)
    (entry,) = filter(None, source.entries())
    assert source.read(entry) == directory
    source.close()


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_archive_with_random_faults_is_refused_or_read_but_never_fails(
    alice: User, tmp_path: Path, data
):
    whole = bytearray(packed({"a/b.md": "text " * 50, "c.md": "other", "d.png": b"1"}))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    whole = whole[: data.draw(st.integers(len(whole) - 30, len(whole)))]
    try:
        transfer = imported(alice, bytes(whole), tmp_path / "a.zip")
    except ArchiveUnreadable:
        return
    assert transfer.status == "finished"


@given(st.binary(max_size=200))
def test_bytes_that_are_no_archive_are_refused(tmp_path_factory, data: bytes):
    path = tmp_path_factory.getbasetemp() / "bytes.zip"
    path.write_bytes(data)
    with pytest.raises(ArchiveUnreadable):
        ZipSource(path, reading.UPLOAD)


def test_raw_deflate_bomb_ends_at_the_length_of_a_note(alice: User, do_import: Importer):
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    assert len(deflate.compress(bytes(10)) + deflate.flush()) < 20
    transfer = do_import(alice, {"bomb.md": b"0" * 60_000_000})
    assert "bytes" in reason(transfer, "bomb.md")


def test_folder_is_read_without_following_links(alice: User, tmp_path: Path):
    root = tmp_path / "vault"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "note.md").write_text("hello")
    (tmp_path / "outside.md").write_text("secret")
    (root / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "linked").symlink_to(tmp_path, target_is_directory=True)
    entries = {each.path: each.refusal for each in FolderSource(root).entries() if each}
    assert entries.pop("link.md") == "The file is a symbolic link."
    assert entries.pop("linked") == "The file is a symbolic link."
    assert entries == {"sub/note.md": ""}
    assert FolderSource(root).total == 3


def test_folder_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "note.md").write_text("hello")
    scandir = os.scandir

    def scanned(path: Any) -> Any:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scanned)
    entries = {each.path: each.refusal for each in FolderSource(tmp_path).entries() if each}
    assert entries == {"note.md": "", "closed": "The folder cannot be read."}
    assert FolderSource(tmp_path).total == 2


def test_file_of_a_time_that_no_calendar_has_is_read(tmp_path: Path, monkeypatch):
    path = tmp_path / "note.md"
    path.write_text("hello")
    status = list(path.lstat())
    status[8] = 10**15
    monkeypatch.setattr(Path, "lstat", lambda self: os.stat_result(status))
    entry = reading._file_entry(tmp_path, path)
    assert (entry.modified, entry.refusal) == (None, "")
