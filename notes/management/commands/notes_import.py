"""`manage.py notes_import USER FILE|FOLDER`: a ZIP or a folder of Markdown files as notes."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from notes.exceptions import NoteError
from notes.folders import ROOT
from notes.models import FileOutcome, NoteTransfer, TransferStatus
from notes.transfer import services
from notes.transfer.archive import SHELL, FolderSource, Source, ZipSource
from notes.transfer.exceptions import ArchiveUnreadable
from notes.transfer.importing import Import

REPORTED = (FileOutcome.KEPT, FileOutcome.REFUSED)


def _given(path: str) -> Path:
    """Nothing, as of a variable that is not set, is not the folder that one is in."""
    if not path:
        raise ArgumentTypeError("There is no name.")
    return Path(path)


class Command(BaseCommand):
    help = "Import Markdown files as a user's notes. Importing them again is safe."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="username of the owner")
        parser.add_argument("source", type=_given, help="a ZIP archive, or a folder")
        parser.add_argument("--folder", default=ROOT, help="import into this folder")
        parser.add_argument(
            "--overwrite",
            action="store_true",
            help="replace notes that were changed here since, too",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        owner = get_user_model().objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"There is no user {options['user']!r}.")
        path: Path = options["source"]
        try:
            source: Source = FolderSource(path) if path.is_dir() else ZipSource(path, SHELL)
            transfer = services.transfer_record(
                owner=owner,
                name=path.name,
                folder=options["folder"],
                overwrite=options["overwrite"],
                total=source.total,
            )
        except (ArchiveUnreadable, NoteError) as error:
            raise CommandError(error.message) from error
        try:
            self._run(Import(transfer, source))
        # Raised again, Ctrl-C too: an import that will never go on is not shown as one that does.
        except BaseException:
            services.transfer_end(
                transfer_id=transfer.pk, status=TransferStatus.FAILED, error=services.NEVER_ENDED
            )
            raise
        self._report(transfer)
        if transfer.files_refused:
            raise CommandError(f"Not everything is imported: {transfer.files_refused:,} refused.")

    def _run(self, running: Import) -> None:
        try:
            while running.step():
                at, total = running.transfer.position, running.transfer.total
                self.stderr.write(f"\r{at:,} of {total:,} files", ending="")
        finally:
            running.close()

    def _report(self, transfer: NoteTransfer) -> None:
        transfer.refresh_from_db()
        self.stderr.write("\r", ending="")
        for file in transfer.files.filter(outcome__in=REPORTED).iterator():
            self.stdout.write(f"{file.outcome}: {file.path}: {file.reason}")
        counts = [(getattr(transfer, f"files_{each}"), each) for each in FileOutcome]
        said = ", ".join(f"{count:,} {outcome}" for count, outcome in counts if count)
        self.stdout.write(f"Import {transfer.pk}: {said or 'no files'}.")
