"""CPU time in units of a fixed piece of work done in the same moment: no test asserts seconds.

One unit is about 100 ms of a quiet core; on a slower or busier machine both sides grow alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Effort:
    units: float = 0.0


@contextmanager
def measured() -> Iterator[Effort]:
    """What the block takes, of this thread's CPU time; known after it."""
    effort = Effort()
    before = _reference()
    began = time.thread_time()
    yield effort
    spent = time.thread_time() - began
    effort.units = spent / max(before, _reference())


def _reference() -> float:
    began = time.thread_time()
    total = 0
    for number in range(700_000):
        total += number % 7
    return time.thread_time() - began
