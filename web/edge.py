"""What is settled before Django sees a request: how large a body may be, and the last slash."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

MIB = 1024 * 1024
TOO_LARGE = json.dumps(
    {
        "error": {
            "code": "body_too_large",
            "message": "The body of this request is larger than is accepted here.",
            "fields": {},
        }
    }
).encode()


class Edge:
    """Refuse bodies over the cap of their path; complete paths under /api/ that lack the slash.

    ``caps`` maps a prefix of the path to bytes; elsewhere the cap is ``default``. The slash is
    appended without a redirect, since a redirect loses the body of a POST.
    """

    def __init__(self, app: Any, *, caps: Mapping[str, int], default: int = MIB) -> None:
        self.app = app
        self.caps = caps
        self.default = default

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path: str = scope["path"]
        if path.startswith("/api/") and not path.endswith("/"):
            scope = scope | {"path": path + "/", "raw_path": scope["raw_path"] + b"/"}
        cap = next((n for prefix, n in self.caps.items() if path.startswith(prefix)), self.default)
        if _declared_length(scope["headers"]) > cap:
            return await _refuse(send)
        counted = _Counted(receive, cap)
        await self.app(scope, counted, send)
        if counted.exceeded:
            await _refuse(send)


def _declared_length(headers: list[tuple[bytes, bytes]]) -> int:
    value = next((value for name, value in headers if name == b"content-length"), b"0")
    return int(value) if value.isdigit() else 0


class _Counted:
    """A ``receive`` that breaks off a body over the cap, as if the client had left.

    Django reads the whole body before it does anything, so nothing has been answered by then.
    """

    def __init__(self, receive: Callable[[], Awaitable[dict[str, Any]]], cap: int) -> None:
        self.exceeded = False
        self._receive = receive
        self._left = cap

    async def __call__(self) -> dict[str, Any]:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            self.exceeded = True
            return {"type": "http.disconnect"}
        return message


async def _refuse(send: Any) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(TOO_LARGE)).encode()),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": TOO_LARGE})
