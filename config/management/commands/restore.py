"""``manage.py restore FILE``."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.database_files import DatabaseFileError, database_restore


class Command(BaseCommand):
    help = "Read a FILE that dump wrote into an empty database."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *, file: Path, **options: Any) -> None:
        try:
            database_restore(file)
        except DatabaseFileError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Restored from {file}.")
