"""Django admits a request, something lighter delivers its stream.

``StreamHandler`` is Django's own ASGI handler with two changes: requests are admitted at most 32
at a time (each holds a thread), and a ``HandedOverResponse`` is delivered after Django has
finished the request, so that an open stream holds no thread, no request and no connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import IO, Any

from asgiref.sync import ThreadSensitiveContext
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.http.response import HttpResponseBase
from django.utils.http import parse_header_parameters

from web.streams import HandedOverResponse, Message, Send

logger = logging.getLogger(__name__)

ADMISSIONS = 32

Receive = Callable[[], Awaitable[Message]]


def _with_header(scope: Any, name: bytes, value: bytes) -> Any:
    others = [header for header in scope["headers"] if header[0] != name]
    return scope | {"headers": [*others, (name, value)]}


class _Incoming:
    """The ``receive`` of one request: remembers a disconnect, holds the body once it is read."""

    def __init__(self, receive: Receive) -> None:
        self.gone = False
        self.body: IO[bytes] | None = None
        self._receive = receive

    async def __call__(self) -> Message:
        message = await self._receive()
        self.gone = self.gone or message["type"] == "http.disconnect"
        return message

    async def until_gone(self) -> None:
        while not self.gone:
            await self()


class _Outgoing:
    """The ``send`` of one request; also what Django is to leave to the delivery."""

    def __init__(self, send: Send, admission: AsyncExitStack, *, head: bool) -> None:
        self.send = send
        self.admission = admission
        self.head = head
        self.handed_over: HandedOverResponse | None = None

    async def __call__(self, message: Any) -> None:
        await self.send(message)


class StreamHandler(ASGIHandler):
    """Django's handler, with admission and delivery apart."""

    def __init__(self) -> None:
        super().__init__()
        self._admission = asyncio.Semaphore(ADMISSIONS)
        self._deliveries: set[asyncio.Task[None]] = set()
        self._draining = False

    def end_streams(self) -> None:
        """The server stops: end every delivery, and each that is still to begin."""
        self._draining = True
        for delivery in self._deliveries:
            delivery.cancel()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        incoming = _Incoming(receive)
        try:
            # Before admission: whoever sends a body slowly holds up nobody else.
            incoming.body = await super().read_body(incoming)
        except RequestAborted:
            return
        async with AsyncExitStack() as admission:
            await admission.enter_async_context(self._admission)
            outgoing = _Outgoing(send, admission, head=scope["method"] == "HEAD")
            async with ThreadSensitiveContext():
                await self.handle(scope, incoming, outgoing)
        if outgoing.handed_over is not None and not incoming.gone:
            await self._hand_over(outgoing.handed_over, scope, incoming, send)

    async def read_body(self, receive: Any) -> Any:
        """What ``__call__`` has read already."""
        return receive.body

    def create_request(self, scope: Any, body_file: Any) -> Any:
        """With the length of its body: one that comes in chunks would be taken for none.

        A `Content-Type` that cannot be read is none.
        """
        headers = dict(scope["headers"])
        length = body_file.seek(0, os.SEEK_END)
        body_file.seek(0)
        if length and b"content-length" not in headers:
            scope = _with_header(scope, b"content-length", str(length).encode())
        try:
            parse_header_parameters(headers.get(b"content-type", b"").decode("latin-1"))
        except ValueError:
            scope = _with_header(scope, b"content-type", b"")
        return super().create_request(scope, body_file)

    async def send_response(self, response: HttpResponseBase, send: Any) -> None:
        """Send a response, or only the beginning of one that is handed over."""
        await send.admission.aclose()  # whoever reads slowly holds up nobody else
        if isinstance(response, HandedOverResponse) and not send.head:
            await super().send_response(response, partial(response.begin, send=send))
            send.handed_over = response
        else:
            await super().send_response(response, send)

    async def _hand_over(
        self, response: HandedOverResponse, scope: Any, incoming: _Incoming, send: Send
    ) -> None:
        delivery = asyncio.create_task(self._deliver(response, scope, send))
        watcher = asyncio.create_task(incoming.until_gone())
        self._deliveries.add(delivery)
        try:
            await asyncio.wait((delivery, watcher), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not self._draining:
                raise
        finally:
            watcher.cancel()
            delivery.cancel()
            await asyncio.gather(delivery, watcher, return_exceptions=True)
            self._deliveries.discard(delivery)
        if self._draining and delivery.cancelled() and not incoming.gone:
            await response.restart(send)

    async def _deliver(self, response: HandedOverResponse, scope: Any, send: Send) -> None:
        if self._draining:
            raise asyncio.CancelledError
        try:
            await response.deliver(scope.get("state", {}), send)
        # An outermost edge: nobody else is left to answer.
        except Exception as error:
            logger.exception("Delivery failed: %s %s", scope["path"], response.label)
            await response.fail(send, error)
