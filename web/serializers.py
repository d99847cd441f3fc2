"""What the shapes of bodies and queries have in common: they hold their fields, and no other.

Also how a rule of a service becomes one of a shape, so that one answer names every field that
breaks one. What the rules are is the services' to say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Any, ClassVar

from django.core.exceptions import ValidationError as FormError
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from web.errors import MAX_FIELDS, MAX_NAME

NO_FIELD = "There is no such field."


class ClosedSerializer(serializers.Serializer[Any]):
    """A body or a query. What it does not know is refused: no slip of the pen passes unnoticed.

    Read-only fields are passed over, and those of ``passed_over``, which only the server sets: what
    was read may be sent back as it is.
    """

    passed_over: ClassVar[Collection[str]] = ()

    def to_internal_value(self, data: Any) -> Any:
        known = {*self.fields, *self.passed_over}
        wrong: dict[str, Any] = unknown(data, known=known) if isinstance(data, Mapping) else {}
        try:
            value = super().to_internal_value(data)
        except ValidationError as error:
            raise ValidationError(wrong | error.detail) from None  # type: ignore[operator]
        if wrong:
            raise ValidationError(wrong)
        return value


def unknown(
    names: Iterable[str], *, known: Collection[str], message: str = NO_FIELD
) -> dict[str, list[str]]:
    """What is wrong with those names that are not known."""
    wrong = (name for name in names if name not in known)
    return {name[:MAX_NAME] or '""': [message] for name in islice(wrong, MAX_FIELDS)}


def rule(check: Callable[[Any], object], refusal: type[Exception]) -> Callable[[Any], None]:
    """A validator, of forms too: wrong is what makes ``check`` raise ``refusal``, in its words."""

    def validate(value: Any) -> None:
        try:
            check(value)
        except refusal as error:
            code = getattr(error, "code", "invalid")
            raise FormError(str(error), code) from None

    return validate
