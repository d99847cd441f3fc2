"""Responses that go on after Django has let go of the request.

A view validates, starts what there is to start and returns one of these; middleware sees an
ordinary response. ``web.handler`` sends the beginning, lets Django finish the request (thread,
connection, signals), and only then lets the response deliver the rest on the bare ASGI ``send``.
What is delivered, and in which format, is the business of the caller.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias, cast

from django.http import HttpResponse

from web.errors import database_unavailable
from web.outages import is_outage

Message: TypeAlias = dict[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
State: TypeAlias = Mapping[str, Any]
Body: TypeAlias = bytes | AsyncIterator[bytes]
Source: TypeAlias = Callable[[State], AsyncIterator[bytes]]
Producer: TypeAlias = Callable[[State], Awaitable[tuple[int, Body, dict[str, str]]]]


class HandedOverResponse(HttpResponse):
    """A response that is delivered in parts. ``label`` names it in the log, as in ``run 17``."""

    label = ""

    async def begin(self, message: Message, send: Send) -> None:
        """Take one message of Django's own rendering of this response."""
        raise NotImplementedError

    async def deliver(self, state: State, send: Send) -> None:
        """Send the rest. ``state`` is what the ASGI lifespan keeps, the runtime among it."""
        raise NotImplementedError

    async def fail(self, send: Send, error: Exception) -> None:
        """Tell the client, as well as what was sent so far allows, that delivery failed."""
        raise NotImplementedError

    async def restart(self, send: Send) -> None:
        """Tell the client that this server stops and that it may come back."""
        raise NotImplementedError


class EventStreamResponse(HandedOverResponse):
    """200 and a first comment at once; later errors are events."""

    media_type = "text/event-stream; charset=utf-8"
    first = b": connected\n\n"
    failure = (
        b'event: error\ndata: {"code":"stream_broken","message":"It broke off: connect again.",'
        b'"provider":null,"status":null,"retryable":false}\n\n'
    )
    restarting = b": restarting\n\n"

    def __init__(self, source: Source, *, label: str = "") -> None:
        super().__init__(self.first, content_type=self.media_type)
        self.source = source
        self.label = label
        self["Cache-Control"] = "no-cache, no-store, no-transform"
        self["Content-Encoding"] = "identity"
        self["X-Accel-Buffering"] = "no"

    async def begin(self, message: Message, send: Send) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = _without_length(message["headers"])
        else:
            message["more_body"] = True
        await send(message)

    async def deliver(self, state: State, send: Send) -> None:
        await _send_body(self.source(state), send)

    async def fail(self, send: Send, error: Exception) -> None:
        await send(_body(self.failure, more=False))

    async def restart(self, send: Send) -> None:
        await send(_body(self.restarting, more=False))


class NdjsonStreamResponse(EventStreamResponse):
    """The same as lines of JSON; a blank line is what a comment is elsewhere."""

    media_type = "application/x-ndjson; charset=utf-8"
    first = b"\n"
    failure = b'{"type":"ERROR","code":"stream_broken","message":"It broke off: connect again."}\n'
    restarting = b"\n"


class DeferredResponse(HandedOverResponse):
    """Headers and cookies are what Django made them; status and body come when they are known.

    ``begun`` tells of work that goes on whether or not this answer can be given: where it cannot,
    it is the body of a 202. An error would have programs ask for the same work again.
    """

    def __init__(self, producer: Producer, *, label: str = "", begun: bytes = b"") -> None:
        super().__init__(b"", content_type="application/json")
        self.producer = producer
        self.label = label
        self.begun = begun
        self["Cache-Control"] = "no-store"
        self._start: Message = {}
        self._started = False

    async def begin(self, message: Message, send: Send) -> None:
        if message["type"] == "http.response.start":
            self._start = message

    async def deliver(self, state: State, send: Send) -> None:
        status, body, headers = await self.producer(state)
        await self._answer(status, body, headers, send)

    async def fail(self, send: Send, error: Exception) -> None:
        # A body that has begun is left without its end: the server then breaks the connection,
        # which no client mistakes for a complete answer.
        if self._started:
            return
        if self.begun:
            await self._answer(202, self.begun, {}, send)
        elif is_outage(error):
            told = database_unavailable()
            body = json.dumps(told.body()).encode()
            await self._answer(told.status_code, body, {"Retry-After": f"{told.wait}"}, send)
        else:
            await self._answer(500, _envelope("internal", "Something went wrong here."), {}, send)

    async def restart(self, send: Send) -> None:
        if self._started:
            return
        if self.begun:
            await self._answer(202, self.begun, {}, send)
        else:
            body = _envelope("restarting", "The server restarts. Try again in a moment.")
            await self._answer(503, body, {"Retry-After": "5"}, send)

    async def _answer(self, status: int, body: Body, headers: dict[str, str], send: Send) -> None:
        fresh = [(k.lower().encode("ascii"), v.encode("latin-1")) for k, v in headers.items()]
        if isinstance(body, bytes):
            fresh.append((b"content-length", str(len(body)).encode("ascii")))
        names = {name for name, _ in fresh}
        kept = [h for h in _without_length(self._start["headers"]) if h[0].lower() not in names]
        self._started = True
        await send(self._start | {"status": status, "headers": kept + fresh})
        if isinstance(body, bytes):
            await send(_body(body, more=False))
        else:
            await _send_body(body, send)


async def _send_body(parts: AsyncIterator[bytes], send: Send) -> None:
    async with aclosing(cast("Any", parts)):
        async for part in parts:
            if part:
                await send(_body(part, more=True))
    await send(_body(b"", more=False))


def _body(data: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


def _without_length(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [header for header in headers if header[0].lower() != b"content-length"]


def _envelope(code: str, message: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": message, "fields": {}}}).encode()
