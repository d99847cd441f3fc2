"""Serializer fields for text that a person wrote: kept to the last space, NUL refused."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class ExactTextField(serializers.CharField):
    """Text that is stored as it came: not trimmed, may be blank. Numbers are not text.

    NUL (`null_character`) and lone surrogates are refused by the base class.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "allow_blank": True, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)
