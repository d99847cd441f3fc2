"""``manage.py dump FILE``."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.database_files import DatabaseFileError, database_dump


class Command(BaseCommand):
    help = "Write everything in the database to FILE, as SQL. Others may work meanwhile."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *, file: Path, **options: Any) -> None:
        try:
            database_dump(file)
        except DatabaseFileError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Written to {file}.")
