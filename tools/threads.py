"""The only way from async code to the database, and the executor of synchronous tools.

``unit_of_work`` runs one synchronous function, with its transaction inside, on one of 8 threads
and gives the connection back afterwards: however many streams are open, at most 8 connections are
used. A caller that is cancelled waits for its thread and then re-raises, so that no transaction
runs on beside its clean-up. Synchronous tools use 16 other threads.
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
    return await _shielded(_units, partial(function, *args, **kwargs))


async def tool_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous tool. A caller that is cancelled does not wait: a thread cannot be ended.

    Keeps the caller's context variables.
    """
    context = contextvars.copy_context()
    work = partial(context.run, partial(function, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_tools, _with_connection, work)


async def _shielded(executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    future = asyncio.get_running_loop().run_in_executor(executor, _with_connection, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if not future.done():
            await asyncio.wait([future])
        raise


def _with_connection(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()
