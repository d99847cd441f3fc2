"""What stops a file, or a whole import.

::

    TransferError
    ├── FileRefused           one file cannot become a note: the others go on
    ├── ArchiveUnreadable     there is nothing to import from; the transfer fails with this message
    └── TransferInterrupted   the worker stops: the job is handed back and goes on elsewhere
"""

from __future__ import annotations


class TransferError(Exception):
    """``message`` is fit for a person."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class FileRefused(TransferError):
    pass


class ArchiveUnreadable(TransferError):
    pass


class TransferInterrupted(TransferError):
    def __init__(self) -> None:
        super().__init__("The worker stopped.")
