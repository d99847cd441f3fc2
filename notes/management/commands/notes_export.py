"""`manage.py notes_export USER FILE`: all notes of a user as a ZIP of Markdown files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from notes.exceptions import NoteError
from notes.transfer import zip_stream
from notes.transfer.exporting import Export
from notes.transfer.zip_stream import File


class Command(BaseCommand):
    help = "Write a user's notes into a ZIP of Markdown files with front matter."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username of the owner")
        parser.add_argument("file", type=Path, help="where the archive goes; one there is replaced")
        parser.add_argument("--folder", help="only this folder, with those inside it")
        parser.add_argument("--tag", action="append", default=[], help="only notes with this tag")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = get_user_model().objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"There is no user {options['user']!r}.")
        target: Path = options["file"]
        try:
            if target.exists() and not target.is_file():
                raise CommandError(f"{target} cannot be written: it is not a regular file.")
            export = Export(
                owner=owner, folder=options["folder"], subfolders=True, tags=options["tag"]
            )
            total = export.count()
            if not total and (options["folder"] is not None or options["tag"]):
                raise CommandError("There are no such notes: nothing is written.")
            _replace(target, self._told(export.files(), total))
        except NoteError as error:
            raise CommandError(error.message) from error
        except OSError as error:
            raise CommandError(f"{target} cannot be written: {error.strerror}.") from error
        self.stderr.write(f"\r{total:,} notes are in {target}.")

    def _told(self, files: Iterator[File], total: int) -> Iterator[File]:
        """``files``, with a line that says how far it is."""
        for number, file in enumerate(files, start=1):
            if number % 1000 == 0:
                self.stderr.write(f"\r{number:,} of {total:,} notes", ending="")
            yield file


def _replace(target: Path, files: Iterator[File]) -> None:
    """Write the archive beside ``target`` first, so that a broken one never takes its place."""
    descriptor, draft = tempfile.mkstemp(dir=target.absolute().parent, suffix=".zip")
    try:
        with os.fdopen(descriptor, "wb") as file:
            zip_stream.write(files, file)
        Path(draft).replace(target)
    # Raised again: half an archive is not kept.
    except BaseException:
        Path(draft).unlink()
        raise
