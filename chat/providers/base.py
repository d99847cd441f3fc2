"""What every provider can do: stream one model call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from chat.types import Delta, ModelRequest


class Provider(Protocol):
    """A vendor endpoint with its key and wire format.

    ``stream`` yields one tuple of deltas per upstream read; the last delta of all is a
    ``Completion``. It raises ``ProviderError`` only before the first delta was handed on; a fault
    after that is the ``Completion``'s. Closing the iterator closes the upstream connection.
    """

    name: str

    def stream(self, request: ModelRequest) -> AsyncIterator[tuple[Delta, ...]]: ...
