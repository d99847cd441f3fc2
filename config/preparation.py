"""What has to be in place before a server answers: the schema of the database, the static files.

Several processes may start at once: each step is done by one of them while the others wait.
"""

from __future__ import annotations

import fcntl
from hashlib import sha256
from pathlib import Path

import psycopg
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from procrastinate.contrib.django.utils import connector_params

CONNECT_SECONDS = 10
MIGRATION_LOCK = 0x6E77_0002


def database_reach() -> None:
    """One plain connection: its error says at once what a pool only says with its time-out."""
    psycopg.connect(**connector_params(), connect_timeout=CONNECT_SECONDS).close()


def schema_is_current() -> bool:
    """Whether every migration is applied."""
    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def schema_migrate() -> bool:
    """Apply what is missing; False where nothing was."""
    if schema_is_current():
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            call_command("migrate", verbosity=0, interactive=False)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
    return True


def static_collect() -> bool:
    """Collect the static files where they differ from those of the last time; False otherwise."""
    root = Path(settings.STATIC_ROOT)
    stamp = root.with_name(f"{root.name}.fingerprint")
    fingerprint = _static_fingerprint()
    with root.with_name(f"{root.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if root.exists() and stamp.exists() and stamp.read_text() == fingerprint:
            return False
        root.mkdir(exist_ok=True)
        # Anew, since collecting skips what looks older than what is there, as an update may.
        call_command("collectstatic", verbosity=0, interactive=False, clear=True)
        stamp.write_text(fingerprint)
    return True


def _static_fingerprint() -> str:
    digest = sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            info = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{info.st_size}\0{info.st_mtime_ns}\n".encode())
    return digest.hexdigest()
