"""``manage.py search_rebuild``: write all search entries anew while reads and writes go on."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from notes.search import filling

WIDTH = 40


class Command(BaseCommand):
    help = "Index all notes anew for search, in batches. Searches and saves go on meanwhile."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--batch", type=int, default=200, help="Notes per transaction.")

    def handle(self, *args: Any, batch: int, **options: Any) -> None:
        if batch < 1:
            raise CommandError("Give a batch of at least 1 note.")
        total = filling.notes_to_index()
        for done in filling.rebuild(batch=batch):
            self._show(done, max(total, done))
        self.stdout.write(f"\n{total} notes are indexed.")

    def _show(self, done: int, total: int) -> None:
        bar = "█" * (WIDTH * done // total)
        self.stdout.write(f"\r{bar:░<{WIDTH}} {100 * done // total:3} %", ending="")
        self.stdout.flush()
