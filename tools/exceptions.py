"""Errors of tools by audience.

ToolError                 for the model: its text becomes the call's error result
  ArgumentsError          the arguments do not fit the tool; says of each what is wrong
AlreadyRegistered         for the developer: two tools claim one name
"""

from __future__ import annotations

from collections.abc import Mapping

from django.core.exceptions import ImproperlyConfigured


class ToolError(Exception):
    """Says in words that a model can act on why a call could not be carried out."""


class ArgumentsError(ToolError):
    """``faults``: what is wrong, by the name of the argument."""

    def __init__(self, message: str, *, faults: Mapping[str, list[str]]) -> None:
        super().__init__(message)
        self.faults = faults


class AlreadyRegistered(ImproperlyConfigured):
    """Two tools claim one name."""
