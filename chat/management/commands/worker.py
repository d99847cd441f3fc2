"""``manage.py worker``: carries runs, without serving anything."""

from __future__ import annotations

import asyncio
import signal

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string

from chat.runs.runtime import Runtime
from tools.leaving import leave_soon


class Command(BaseCommand):
    help = "Carry runs that any server queued, until SIGTERM or SIGINT."
    requires_system_checks = ("tools", "models")

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write("Notewire worker: waiting for runs. Ctrl+C stops it.")
        with import_string(settings.NOTEWIRE_DATABASE_WATCH)():
            asyncio.run(_work())


async def _work() -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with Runtime(worker=True):
        await stopping.wait()
        leave_soon()
