"""What the log says of a refused request: one line. Its traceback is of use to nobody."""

from __future__ import annotations

import logging


class WithoutTraceback(logging.Filter):
    """Takes the traceback off the records of answers that are no fault of the server."""

    def filter(self, record: logging.LogRecord) -> bool:
        if 400 <= getattr(record, "status_code", 0) < 500:
            record.exc_info = record.exc_text = None
        return True
