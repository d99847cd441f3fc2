"""The only way from async code to the database, and the executor of synchronous tools.

``unit_of_work`` runs one synchronous function, with its transaction inside, on one of 8 threads
and gives the connection back afterwards: however many streams are open, at most 8 connections are
used. A caller that is cancelled waits for its thread and then re-raises, so that no transaction
runs on beside its clean-up; a statement that goes on meanwhile is cancelled after a moment.
``chore`` is for what nobody waits for, such as indexing and imports: it has 2 threads of its own,
so that however long it takes, runs and pages find their threads free. Synchronous tools use 16
other threads. All keep the caller's context variables. What does not end when the process is told
to stop is ``leaving``'s.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

import psycopg
from django.db import DEFAULT_DB_ALIAS, close_old_connections, connections

P = ParamSpec("P")
T = TypeVar("T")

#: How long a unit whose caller was cancelled may go on before its statement is cancelled, too.
PATIENCE_SECONDS = 1.0
#: How often a chore's statement is cancelled, and how long each time its thread is waited for.
CHORE_CANCELS = 3
CHORE_SECONDS = 0.4

_units = ThreadPoolExecutor(max_workers=8, thread_name_prefix="unit")
_chores = ThreadPoolExecutor(max_workers=2, thread_name_prefix="chore")
_tools = ThreadPoolExecutor(max_workers=16, thread_name_prefix="tool")


async def unit_of_work(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``function`` with a database connection of its own; its exceptions are the caller's."""
    statements = _Statements()
    future = asyncio.wrap_future(_begin(_units, partial(function, *args, **kwargs), statements))
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future], timeout=PATIENCE_SECONDS if cancelled else None)
            if not future.done():
                await statements.cancel()
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # Asked for, so that asyncio does not report it as never retrieved.
        future.exception()
        raise cancelled
    return future.result()


async def chore(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """``unit_of_work`` for what may take long, and may be begun again by another at any time.

    A caller that is cancelled has its statement cancelled at once, and waits for its thread a
    moment only: what still goes on then must do no harm beside whoever takes the work up.
    """
    statements = _Statements()
    work = _begin(_chores, partial(function, *args, **kwargs), statements)
    future = asyncio.wrap_future(work)
    try:
        await asyncio.wait([future])
    except asyncio.CancelledError:
        try:
            for _ in range(CHORE_CANCELS):
                if work.cancel() or work.done():
                    break
                await statements.cancel()
                await asyncio.wait([future], timeout=CHORE_SECONDS)
        finally:
            # Nobody retrieves what comes of it; also the loop may end before it does.
            future.cancel()
        raise
    return future.result()


async def tool_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous tool. A caller that is cancelled does not wait: a thread cannot be ended.

    One that is still queued by then never starts.
    """
    work = _begin(_tools, partial(function, *args, **kwargs), _Statements())
    return await asyncio.wrap_future(work)


class _Statements:
    """What a thread has PostgreSQL do, for another thread to cancel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wrapper: Any = None

    @contextmanager
    def of_this_thread(self) -> Iterator[None]:
        self._wrapper = connections[DEFAULT_DB_ALIAS]
        try:
            yield
        finally:
            # What goes back to the pool may be somebody else's a moment later.
            with self._lock:
                self._wrapper = None

    async def cancel(self) -> None:
        """Cancel the one that is running, if one is: it fails as it does at a time-out."""
        await asyncio.get_running_loop().run_in_executor(None, self._cancel)

    def _cancel(self) -> None:
        with self._lock:
            connection = self._wrapper.connection if self._wrapper is not None else None
            if connection is not None:
                with suppress(psycopg.Error):
                    connection.cancel_safe(timeout=PATIENCE_SECONDS)


def _begin(
    executor: ThreadPoolExecutor, work: Callable[[], T], statements: _Statements
) -> Future[T]:
    context = contextvars.copy_context()
    return executor.submit(context.run, _with_connection, work, statements)


def _with_connection(work: Callable[[], T], statements: _Statements) -> T:
    close_old_connections()
    try:
        with statements.of_this_thread():
            return work()
    except StopIteration as error:
        # A future cannot carry it: whoever waits would wait for ever.
        raise RuntimeError("StopIteration left a unit of work") from error
    finally:
        close_old_connections()
