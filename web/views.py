"""The base of all views of the API: what an operation takes is said beside it, and is all it takes.

Owns `takes`, with which a method says its body and its query, and `ApiView`, which reads them and
refuses what was not said, before anything is looked up. The OpenAPI document tells the same
(``web.schema``). What a value may be is the serializers' to say, and the services'.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ListField

from web.pagination import PAGE_PARAMETERS, limit_faults
from web.serializers import ClosedSerializer, unknown

if TYPE_CHECKING:
    from rest_framework.views import APIView

Method = TypeVar("Method", bound=Callable[..., Any])
Shape = type[ClosedSerializer]

BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
ONCE = "Give this once."


class Taken(NamedTuple):
    """What an operation takes."""

    body: Shape | None = None
    partial: bool = False
    query: Shape | None = None
    paged: bool = False


def takes(
    *,
    body: Shape | None = None,
    partial: bool = False,
    query: Shape | None = None,
    paged: bool = False,
) -> Callable[[Method], Method]:
    """Say what a view method reads; one that says nothing takes nothing.

    ``partial``: no field of the body is required. ``paged``: `cursor` and `limit` as well.
    """

    def mark(method: Method) -> Method:
        method.taken = Taken(body, partial, query, paged)  # type: ignore[attr-defined]
        return method

    return mark


def taken_by(view: APIView, method: str | None) -> Taken:
    """What the view's method takes; HEAD takes what GET takes."""
    handler = getattr(view, (method or "").lower(), None)
    taken = getattr(handler, "taken", None)
    return taken if isinstance(taken, Taken) else Taken()


class ApiView(GenericAPIView[Any]):
    """`asked` is the query, checked, and `sent()` the body."""

    asked: dict[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not hasattr(self, (request.method or "").lower()):
            return  # It is the method that is wrong.
        taken = taken_by(self, request.method)
        self.asked = _query(request, taken)
        is_bare = taken.body is None and request.method in BODY_METHODS
        if is_bare and _is_json(request) and request.data:
            raise ValidationError(unknown(request.data, known=()))

    def sent(self) -> dict[str, Any]:
        """The body, in the shape that the method takes. Of a form, the last value of each name."""
        taken = taken_by(self, self.request.method)
        if taken.body is None:
            raise TypeError("This method takes no body.")
        data: Any = self.request.data
        sent = {name: data[name] for name in data}
        context = {"request": self.request}
        return _checked(taken.body(data=sent, partial=taken.partial, context=context))

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        """`Allow` says what there is."""
        return Response(status=204)


def _is_json(request: Request) -> bool:
    """Clients that have nothing to send may send an empty form, which is left unread."""
    return request._request.content_type == "application/json"


def _query(request: Request, taken: Taken) -> dict[str, Any]:
    """What is no list may be given once, and what is unknown not at all."""
    given = request.query_params
    data: dict[str, Any] = {}
    query = (taken.query or ClosedSerializer)(data=data, context={"request": request})
    fields = query.fields
    known = {*fields, *(PAGE_PARAMETERS if taken.paged else ())}
    wrong = unknown(given, known=known, message=_no_parameter(known))
    wrong |= limit_faults(given) if taken.paged else {}
    for name, values in given.lists():
        is_list = isinstance(fields.get(name), ListField)
        if name in fields:
            data[name] = values if is_list else values[-1]
        if name in known and len(values) > 1 and not is_list:
            wrong[name] = [ONCE]
    return _checked(query, wrong)


def _checked(shape: ClosedSerializer, wrong: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """All that is wrong at once, as forms tell it."""
    if not shape.is_valid() or wrong:
        raise ValidationError({**(wrong or {}), **shape.errors})
    return dict(shape.validated_data)


def _no_parameter(known: Collection[str]) -> str:
    there_are = f"there are {', '.join(sorted(known))}" if known else "this takes none"
    return f"There is no such parameter: {there_are}."
