"""How work grows with its input: no test asserts seconds, which say more of the machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

STEP = 8
"""The larger input of ``growth`` is this many times the smaller."""
NOTHING = 0.002
"""Seconds below which the smaller work says nothing."""


def growth(work: Callable[[int], object], size: int) -> float:
    """By how much more than its input work grows, from ``size / STEP`` to ``size``.

    Work in proportion to its input gives 1, quadratic work ``STEP``. Of this thread's CPU time,
    the lower of two goes each.
    """
    small, large = (min(_spent(work, each) for _ in range(2)) for each in (size // STEP, size))
    return large / max(small, NOTHING) / STEP


def _spent(work: Callable[[int], object], size: int) -> float:
    gc.collect()
    gc.disable()  # a full collection costs by what other tests left, not by this work
    try:
        began = time.thread_time()
        work(size)
        return time.thread_time() - began
    finally:
        gc.enable()
