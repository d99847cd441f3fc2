"""Pages by cursor: `{"count", "next", "previous", "results"}`, stable while rows are added.

A cursor holds the values of the last row seen, not an offset: a row added or removed elsewhere
neither repeats nor hides another. Views give a queryset whose ordering ends in a unique column.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from django.core.exceptions import ValidationError
from django.db.models import Field, Model, Q, QuerySet
from django.http import QueryDict
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from web.errors import ApiError, invalid

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
PAGE_PARAMETERS = ("cursor", "limit")


class Cursor(NamedTuple):
    """Where a page starts: strictly after (or, reversed, before) the row with these values."""

    reverse: bool
    values: list[str]


class CursorPagination(BasePagination):
    """Orders by `ordering` (columns of the model, not null, the last one unique).

    Without `ordering`, the queryset's own order is used.
    """

    ordering: tuple[str, ...] = ()

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.url = request.build_absolute_uri()
        self.columns = _columns(self.ordering, queryset)
        self.cursor = _decoded(request.query_params.get("cursor"), len(self.columns))
        limit = _limit(request.query_params.get("limit"))
        self.count = queryset.count()
        rows = list(self._after_cursor(queryset)[: limit + 1])
        self.more = len(rows) > limit
        self.page = rows[:limit]
        if self.cursor and self.cursor.reverse:
            self.page.reverse()
        return self.page

    def get_paginated_response(self, data: Any) -> Response:
        page = {"count": self.count, "next": self.next_link(), "previous": self.previous_link()}
        return Response({**page, "results": data})

    def next_link(self) -> str | None:
        backwards = self.cursor is not None and self.cursor.reverse
        return self._link(reverse=False, exists=backwards or self.more)

    def previous_link(self) -> str | None:
        forwards = self.cursor is None or not self.cursor.reverse
        return self._link(reverse=True, exists=self.cursor is not None if forwards else self.more)

    def _link(self, *, reverse: bool, exists: bool) -> str | None:
        if not exists:
            return None
        if not self.page:
            return remove_query_param(self.url, "cursor")
        edge = self.page[0 if reverse else -1]
        values = [_text(edge, column.lstrip("-")) for column in self.columns]
        return replace_query_param(self.url, "cursor", _encoded(Cursor(reverse, values)))

    def _after_cursor(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.cursor is None:
            return queryset.order_by(*self.columns)
        columns = self.columns
        if self.cursor.reverse:
            columns = [_reversed(each) for each in columns]
        values = _parsed(queryset.model, columns, self.cursor.values)
        return queryset.filter(_beyond(columns, values)).order_by(*columns)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "format": "uri", "nullable": True}
        return {
            "type": "object",
            "required": ["count", "next", "previous", "results"],
            "properties": {
                "count": {"type": "integer"},
                "next": link,
                "previous": dict(link),
                "results": schema,
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        return [
            _parameter("cursor", "Where the page starts: taken from `next` or `previous`.", None),
            _parameter("limit", "Rows of a page.", limit),
        ]


def _parameter(name: str, description: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": schema or {"type": "string"},
    }


def _columns(ordering: Sequence[str], queryset: QuerySet[Any]) -> list[str]:
    columns = ordering or queryset.query.order_by or queryset.model._meta.ordering
    named = [each for each in columns or () if isinstance(each, str)]
    if not named or len(named) != len(columns or ()):
        raise TypeError("CursorPagination needs an ordering by named columns.")
    return named


def _reversed(column: str) -> str:
    return column[1:] if column.startswith("-") else f"-{column}"


def _beyond(columns: Sequence[str], values: Sequence[Any]) -> Q:
    """Rows after `values`: equal in the first columns, beyond in the next one.

    The bound on the first column alone is implied; it is what an index on it can use.
    """
    found = Q()
    for index, column in enumerate(columns):
        name = column.lstrip("-")
        step = Q(**{f"{name}__{'lt' if column.startswith('-') else 'gt'}": values[index]})
        for earlier, value in zip(columns[:index], values, strict=False):
            step &= Q(**{earlier.lstrip("-"): value})
        found |= step
    first = columns[0].lstrip("-")
    return Q(**{f"{first}__{'lte' if columns[0].startswith('-') else 'gte'}": values[0]}) & found


def _text(row: Any, name: str) -> str:
    if isinstance(row, Model):
        return _field(type(row), name).value_to_string(row)
    return str(row[name])


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    field = model._meta.get_field(name)
    if not isinstance(field, Field):
        raise TypeError(f"{name} is no column to order by.")
    return field


def _parsed(model: type[Model], columns: Sequence[str], values: Sequence[str]) -> list[Any]:
    names = [column.lstrip("-") for column in columns]
    try:
        return [
            _field(model, name).to_python(value) for name, value in zip(names, values, strict=True)
        ]
    except (ValidationError, ValueError, OverflowError):
        raise invalid("This cursor is not valid.", field="cursor") from None


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 0 < int(text) <= MAX_LIMIT):
        raise invalid(f"Give a whole number from 1 to {MAX_LIMIT}.", field="limit")
    return int(text)


def limit_faults(query: QueryDict) -> dict[str, list[str]]:
    """What is wrong with the limit, by its name, to be told with what else is."""
    try:
        _limit(query.get("limit"))
    except ApiError as error:
        return error.fields
    return {}


def _encoded(cursor: Cursor) -> str:
    data = msgspec.json.encode([cursor.reverse, *cursor.values])
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str | None, columns: int) -> Cursor | None:
    if text is None:
        return None
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        reverse, *values = msgspec.json.decode(data, type=list[bool | str])
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise invalid("This cursor is not valid.", field="cursor") from None
    strings = [value for value in values if isinstance(value, str) and "\0" not in value]
    if not isinstance(reverse, bool) or not len(strings) == len(values) == columns:
        raise invalid("This cursor is not valid.", field="cursor")
    return Cursor(reverse, strings)
