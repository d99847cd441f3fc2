"""What is settled before Django sees a request: how large a body may be, and the last slash.

A program learns of a body that is too large at once, in JSON. A browser would take an answer amid
its upload for a broken connection: it is heard out first, up to a bound, then shown a page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from io import BytesIO
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse

from web.errors import ApiError, error_response, wants_json

MIB = 1024 * 1024
#: What a browser may send beyond its cap, as a multiple of it, and still be answered.
HEARD_OUT = 8
#: The parameter with which a form is asked for again.
TOO_LARGE = "too_large"

Receive = Callable[[], Awaitable[dict[str, Any]]]


class Edge:
    """Refuse bodies over the cap of their path; complete paths under /api/ that lack the slash.

    ``caps`` maps a prefix of the path to bytes; elsewhere the cap is ``default``. Pages at
    ``forms`` say themselves what is too large, asked with ``TOO_LARGE``. The slash is appended
    without a redirect, since a redirect loses the body of a POST.
    """

    def __init__(
        self,
        app: Any,
        *,
        caps: Mapping[str, int],
        forms: Collection[str] = (),
        default: int = MIB,
    ) -> None:
        self.app = app
        self.caps = caps
        self.forms = forms
        self.default = default

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path: str = scope["path"]
        if path.startswith("/api/") and not path.endswith("/"):
            scope = scope | {"path": path + "/", "raw_path": scope["raw_path"] + b"/"}
        cap = next((n for prefix, n in self.caps.items() if path.startswith(prefix)), self.default)
        counted = _Counted(receive, cap)
        if _declared_length(scope["headers"]) <= cap:
            await self.app(scope, counted, send)
            if not counted.exceeded:
                return
        request = ASGIRequest(scope, BytesIO())
        if not wants_json(request):
            await counted.hear_out(HEARD_OUT * cap)
        await self._refuse(request, send, cap)

    async def _refuse(self, request: ASGIRequest, send: Any, cap: int) -> None:
        answer = self._answer(request, cap)
        headers = [(name.encode(), value.encode()) for name, value in answer.items()]
        headers.append((b"content-length", str(len(answer.content)).encode()))
        await send(
            {"type": "http.response.start", "status": answer.status_code, "headers": headers}
        )
        await send({"type": "http.response.body", "body": answer.content})

    def _answer(self, request: ASGIRequest, cap: int) -> HttpResponse:
        if request.path in self.forms and not wants_json(request):
            location = f"{request.path}?{TOO_LARGE}=1"
            return HttpResponse(status=HTTPStatus.SEE_OTHER, headers={"Location": location})
        message = f"At most {cap // MIB} MiB can be sent here. Nothing was changed."
        return error_response(request, ApiError("body_too_large", message, 413), shell=False)


def _declared_length(headers: list[tuple[bytes, bytes]]) -> int:
    value = next((value for name, value in headers if name == b"content-length"), b"0")
    return int(value) if value.isdigit() else 0


class _Counted:
    """A ``receive`` that breaks off a body over the cap, as if the client had left.

    Django reads the whole body before it does anything, so nothing has been answered by then.
    """

    def __init__(self, receive: Receive, cap: int) -> None:
        self.exceeded = False
        self._receive = receive
        self._left = cap
        self._has_more = True

    async def __call__(self) -> dict[str, Any]:
        message = await self._next()
        if self._left < 0:
            self.exceeded = True
            return {"type": "http.disconnect"}
        return message

    async def hear_out(self, most: int) -> None:
        """Drop what is still to come of the body, up to ``most`` bytes."""
        while self._has_more and self._left > -most:
            await self._next()

    async def _next(self) -> dict[str, Any]:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        self._has_more = bool(message.get("more_body"))
        return message
