"""``/healthz``: this process answers. ``/readyz``: it can do its work, and for operators, why not.

Answered before Django: no Host is checked (a prober has none to give), no session, no middleware.
Details need NOTEWIRE_METRICS_TOKEN as a bearer token, and hold no names.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.utils.module_loading import import_string
from psycopg_pool import PoolTimeout

from config.preparation import schema_is_current

UNIT_OF_WORK = "tools.threads.unit_of_work"
WORKING = ("none", "starting", "running")


class Health:
    """The two answers for one process."""

    def __init__(self) -> None:
        self._migrated = False

    async def __call__(self, scope: Any, send: Any) -> bool:
        """Answer if the path is one of the two; whether it was."""
        path = scope["path"].rstrip("/")
        if path == "/healthz":
            await _answer(send, 200, {"status": "ok"})
        elif path == "/readyz":
            await self._readiness(scope, send)
        else:
            return False
        return True

    async def _readiness(self, scope: Any, send: Any) -> None:
        unit_of_work = import_string(UNIT_OF_WORK)
        database = await unit_of_work(self._database_state)
        worker = getattr(scope["state"].get("runtime"), "worker_state", "none")
        ready = database == "ok" and worker in WORKING
        body = {"status": "ready" if ready else "unavailable"}
        if _may_see_details(scope["headers"]):
            body |= {"database": database, "worker": worker}
        await _answer(send, 200 if ready else 503, body)

    def _database_state(self) -> str:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            self._migrated = self._migrated or schema_is_current()
        except (DatabaseError, PoolTimeout):
            return "unreachable"
        return "ok" if self._migrated else "not migrated"


def _may_see_details(headers: list[tuple[bytes, bytes]]) -> bool:
    token: str = settings.NOTEWIRE_METRICS_TOKEN
    given = next((value for name, value in headers if name == b"authorization"), b"")
    return bool(token) and secrets.compare_digest(given, f"Bearer {token}".encode())


async def _answer(send: Any, status: int, body: dict[str, str]) -> None:
    content = json.dumps(body).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
