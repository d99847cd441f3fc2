"""Keeps uploaded archives on disk until their import is done: ``$NOTEWIRE_HOME/transfers``.

Names are random and say nothing; what a person called the file is a column of the transfer.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from django.conf import settings


def folder() -> Path:
    path: Path = settings.NOTEWIRE_HOME / "transfers"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def store(parts: Iterable[bytes]) -> str:
    """Write ``parts`` as they come; the name under which they are kept."""
    name = f"{secrets.token_hex(16)}.zip"
    path = folder() / name
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
    # Raised again: half a file is not kept.
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return name


def path_of(name: str) -> Path:
    return folder() / name


def remove(name: str) -> None:
    if name:
        path_of(name).unlink(missing_ok=True)


def remove_older(*, than: datetime, but: Iterable[str]) -> None:
    """Delete what some crash left behind. ``but`` are the names that are still waited for."""
    kept = frozenset(but)
    for path in folder().glob("*.zip"):
        if path.name not in kept and path.stat().st_mtime < than.timestamp():
            path.unlink(missing_ok=True)
