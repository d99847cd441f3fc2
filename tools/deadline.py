"""What keeps a tool that is out of time from still changing something.

The thread of a synchronous tool cannot be ended: ``invoke`` has told the model by then that the
outcome is unknown. A tool does its work inside ``atomic_until(context.deadline)``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from tools.exceptions import ToolError


class OutOfTime(ToolError):
    """Nothing was changed."""

    def __init__(self) -> None:
        super().__init__("it took too long, and nothing was changed. Try something smaller.")


@contextmanager
def atomic_until(deadline: float) -> Iterator[None]:
    """A transaction that commits nothing after ``deadline`` (in seconds of ``time.monotonic``).

    Its statements get the time that is left; raises ``OutOfTime`` where that does not suffice.
    """
    try:
        with transaction.atomic():
            _limit_statements(deadline)
            yield
            if time.monotonic() >= deadline:
                raise OutOfTime
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise OutOfTime from error
        raise


def _limit_statements(deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise OutOfTime
    if math.isfinite(left):
        with connection.cursor() as cursor:
            milliseconds = f"{max(1, round(left * 1000))}ms"
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [milliseconds])
