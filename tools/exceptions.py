"""Errors of tools by audience.

ToolError                 for the model: its text becomes the call's error result
AlreadyRegistered         for the developer: two tools claim one name
"""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured


class ToolError(Exception):
    """Says in words that a model can act on why a call could not be carried out."""


class AlreadyRegistered(ImproperlyConfigured):
    """Two tools claim one name."""
