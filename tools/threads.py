"""The only way from async code to the database, and the executor of synchronous tools.

``unit_of_work`` runs one synchronous function, with its transaction inside, on one of 8 threads
and gives the connection back afterwards: however many streams are open, at most 8 connections are
used. A caller that is cancelled waits for its thread and then re-raises, so that no transaction
runs on beside its clean-up. Synchronous tools use 16 other threads. Both keep the caller's context
variables. When the process ends, both finish what they are at: statements have time-outs.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")

_units = ThreadPoolExecutor(max_workers=8, thread_name_prefix="unit")
_tools = ThreadPoolExecutor(max_workers=16, thread_name_prefix="tool")


async def unit_of_work(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``function`` with a database connection of its own; its exceptions are the caller's."""
    future = _begin(_units, partial(function, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # Asked for, so that asyncio does not report it as never retrieved.
        future.exception()
        raise cancelled
    return future.result()


async def tool_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous tool. A caller that is cancelled does not wait: a thread cannot be ended.

    One that is still queued by then never starts.
    """
    return await _begin(_tools, partial(function, *args, **kwargs))


def _begin(executor: ThreadPoolExecutor, work: Callable[[], T]) -> asyncio.Future[T]:
    context = contextvars.copy_context()
    return asyncio.get_running_loop().run_in_executor(
        executor, context.run, partial(_with_connection, work)
    )


def _with_connection(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    except StopIteration as error:
        # A future cannot carry it: whoever waits would wait for ever.
        raise RuntimeError("StopIteration left a unit of work") from error
    finally:
        close_old_connections()
