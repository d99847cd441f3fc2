"""Serializer fields for what a client may send much of: text as a person wrote it, and lists."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.validators import ProhibitSurrogateCharactersValidator


class ExactTextField(serializers.CharField):
    """Text that is stored as it came: not trimmed, may be blank. Numbers are not text.

    NUL (`null_character`) is refused by the base class, which would look for lone surrogates one
    character after another.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "allow_blank": True, **options})
        self.validators = [
            _surrogates_refuse if isinstance(each, ProhibitSurrogateCharactersValidator) else each
            for each in self.validators
        ]

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class OneOfField(serializers.ChoiceField):
    """One of a few words; what they are is said to whoever gives another."""

    def __init__(self, choices: Any, **options: Any) -> None:
        super().__init__(choices, **options)
        words = ", ".join(str(word) for word in self.choices)
        self.error_messages["invalid_choice"] = f"Give one of: {words}."


def _surrogates_refuse(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise serializers.ValidationError("Half a surrogate pair is not text.") from None


class ShortListField(serializers.ListField):
    """How long it is is looked at before any of its items is."""

    def __init__(self, *, max_length: int, **options: Any) -> None:
        super().__init__(max_length=max_length, **options)

    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, list) and len(data) > (self.max_length or 0):
            self.fail("max_length", max_length=self.max_length)
        return super().to_internal_value(data)
