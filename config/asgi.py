"""The ASGI application: the edge, Django with streams handed over, and the lifespan.

The lifespan makes the runtime that ``NOTEWIRE_RUNTIME`` names (HTTP client, event hub, worker),
keeps it in the state that reaches every request, and starts draining at the first SIGTERM or
SIGINT: the server itself waits for open streams before it tells the lifespan anything.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import Any

import django
from django.conf import settings
from django.utils.module_loading import import_string

from config.database_watch import watching
from config.health import Health

logger = logging.getLogger(__name__)

MIB = 1024 * 1024
#: An archive, and the form around it; the form of a card, with the arguments of all its calls.
BODY_CAPS = {"/api/notes/": 32 * MIB, "/notes/": 33 * MIB, "/approvals/": 8 * MIB}
FORMS = ("/notes/transfers/",)
LEAVE_SOON = "tools.leaving.leave_soon"


class Application:
    """One per process and event loop; ``drain`` ends the streams before the server stops."""

    def __init__(self) -> None:
        self._handler = import_string("web.handler.StreamHandler")()
        self._edge = import_string("web.edge.Edge")(self._handler, caps=BODY_CAPS, forms=FORMS)
        self._health = Health()
        self._runtime: Any = None
        self._draining: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif scope["type"] == "http" and not await self._health(scope, send):
            await self._edge(scope, receive, send)

    def drain(self) -> None:
        """Stop taking runs and end the streams. Called on the event loop; harmless twice."""
        if self._draining is None:
            self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        try:
            if self._runtime is not None:
                await self._runtime.drain()
        finally:
            self._handler.end_streams()

    async def _live(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        async with AsyncExitStack() as stack:
            stack.enter_context(watching())
            if settings.NOTEWIRE_RUNTIME is not None:
                make_runtime = import_string(settings.NOTEWIRE_RUNTIME)
                self._runtime = await stack.enter_async_context(
                    make_runtime(worker=settings.NOTEWIRE_WORKER)
                )
            scope["state"]["runtime"] = self._runtime
            stack.enter_context(_at_first_signal(self.drain))
            _follow_parent()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            self.drain()
            if self._draining is not None:
                await self._draining
        await send({"type": "lifespan.shutdown.complete"})


def _follow_parent() -> None:
    """One of several processes stops when the one that supervises them is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        stop = partial(os.kill, os.getpid(), signal.SIGTERM)
        loop = asyncio.get_running_loop()
        loop.add_reader(parent.sentinel, lambda: (loop.remove_reader(parent.sentinel), stop()))


@contextmanager
def _at_first_signal(react: Callable[[], None]) -> Iterator[None]:
    """Call ``react`` on the event loop when a signal to stop arrives, then the server's handler."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only; whoever runs a server elsewhere drains it
        return
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    previous: dict[int, Any] = {number: signal.getsignal(number) for number in signals}
    leave_soon = import_string(LEAVE_SOON)

    def handle(number: int, frame: Any) -> None:
        leave_soon()
        loop.call_soon_threadsafe(react)
        if callable(previous[number]):
            previous[number](number, frame)

    for number in signals:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in signals:
            signal.signal(number, previous[number])


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)
application = Application()
