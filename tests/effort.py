"""How work grows with its input: no test asserts seconds, which say more of the machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from statistics import median

STEP = 8
"""The larger input of ``growth`` is this many times the smaller."""
NOTHING = 0.002
"""Seconds below which the smaller work says nothing."""


def growth(work: Callable[[int], object], size: int) -> float:
    """By how much more than its input work grows, from ``size / STEP`` to ``size``.

    Work in proportion to its input gives 1, quadratic work ``STEP``. The medians of three goes
    are compared, taken in turn, of this thread's CPU time.
    """
    small, large = [], []
    for _ in range(3):
        small.append(_spent(work, size // STEP))
        large.append(_spent(work, size))
    return median(large) / max(median(small), NOTHING) / STEP


def _spent(work: Callable[[int], object], size: int) -> float:
    gc.collect()
    gc.disable()  # a full collection costs by what other tests left, not by this work
    try:
        began = time.thread_time()
        work(size)
        return time.thread_time() - began
    finally:
        gc.enable()
