"""`manage.py notes_purge [--days N]`: empties the bin of what has been in it long enough."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from notes.services import KEPT_IN_BIN, bin_purge


class Command(BaseCommand):
    help = "Delete for good, with their history, the notes that were deleted long enough ago."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--days",
            type=int,
            default=KEPT_IN_BIN.days,
            help="how long a note is kept in the bin (default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> str:
        days = options["days"]
        if not 0 <= days <= 36_500:
            raise CommandError("Give a number of days from 0 to 36500.")
        purged = bin_purge(before=timezone.now() - timedelta(days=days))
        return "1 note deleted for good." if purged == 1 else f"{purged} notes deleted for good."
