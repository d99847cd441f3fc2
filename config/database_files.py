"""The whole database as a file of SQL, and back: backups, moves and upgrades of PostgreSQL."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from django.db import connection
from psycopg.conninfo import make_conninfo

from config import embedded_postgres, env


class DatabaseFileError(Exception):
    """Nothing was written or read; the message says why."""


def database_dump(path: Path) -> None:
    """Write all rows and the schema to ``path``, as of one moment, while others work on."""
    _run("pg_dump", "--no-owner", "--no-privileges", f"--file={path.resolve()}")


def database_restore(path: Path) -> None:
    """Read what ``database_dump`` wrote into an empty database: all of it or nothing."""
    if not path.is_file():
        raise DatabaseFileError(f"{path} is not a file.")
    if connection.introspection.table_names():
        raise DatabaseFileError(
            "The database is not empty. Restore into a new one: move the folder postgres in "
            "NOTEWIRE_HOME away, or let DATABASE_URL name an empty database."
        )
    options = ["--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", "--output=/dev/null"]
    _run("psql", "--no-psqlrc", *options, f"--file={path.resolve()}")


def _run(program: str, *arguments: str) -> None:
    known: dict[str, Any] = dict(connection.get_connection_params())
    wanted = ("host", "port", "dbname", "user", "sslmode", "sslrootcert", "sslcert", "sslkey")
    address = {key: str(known[key]) for key in wanted if key in known}
    environment = env.inherited(without="PGPASSWORD") | {
        "PGPASSWORD": str(known.get("password", ""))
    }
    command = [_path_of(program), *arguments, "--dbname", make_conninfo(**address)]
    done = subprocess.run(  # noqa: S603
        command,
        env=environment,
        umask=0o077,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise DatabaseFileError(f"{program} failed: {done.stderr.strip()}")


def _path_of(program: str) -> str:
    """The installed program, which may speak TLS, before the one that comes with Notewire."""
    own = connection.settings_dict["HOST"].startswith("/") or shutil.which(program) is None
    return str(embedded_postgres.programs() / program) if own else program
