"""The one shape of an error, `{"error": {"code", "message", "fields"}}`, at every door.

Owns `ApiError`, the translation of what DRF and Django raise, and the handlers of errors that
happen outside a view. Who raises which code, and the services' own errors, are theirs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import islice
from typing import Any

from django.core import exceptions as django_exceptions
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from rest_framework import exceptions as drf_exceptions
from rest_framework.response import Response

from web.outages import is_outage

Fields = Mapping[str, Sequence[str]]

API_PREFIXES = ("/api/", "/v1/")
OUTAGE_SECONDS = 5
#: So many wrong fields are named, each so far, in so many characters: a body may hold more than
#: anyone can read.
MAX_FIELDS = 100
MAX_NAME = 100
MAX_MESSAGE = 1000
NUL_CODES = frozenset({"null_characters_not_allowed", "null_character"})


class ApiError(drf_exceptions.APIException):
    """An error for the client; `extra` are further keys of the error object, `wait` the seconds
    after which it makes sense to try again.

    Safe to raise from a service: a transaction around it rolls back, and every door answers with
    its status and body.
    """

    def __init__(
        self,
        code: str,
        message: str,
        status: int,
        fields: Fields | None = None,
        extra: Mapping[str, Any] | None = None,
        wait: int | None = None,
    ) -> None:
        super().__init__(message, code)
        self.code = code
        self.message = message
        self.status_code = status
        self.fields = {name: list(messages) for name, messages in (fields or {}).items()}
        self.extra = dict(extra or {})
        self.wait = wait

    def __str__(self) -> str:
        return self.message

    def body(self) -> dict[str, Any]:
        error = {"code": self.code, "message": self.message, "fields": self.fields, **self.extra}
        return {"error": error}


def invalid(message: str, *, field: str | None = None) -> ApiError:
    """A 400 about the whole request, or about one field of it."""
    return ApiError("invalid", message, 400, {field: [message]} if field else None)


def not_found() -> ApiError:
    """Another person's row and a missing row: the same words, so that neither can be told."""
    return ApiError("not_found", "Not found.", 404)


def database_unavailable() -> ApiError:
    message = "The database does not answer. Try again in a moment."
    return ApiError("database_unavailable", message, 503, wait=OUTAGE_SECONDS)


def exception_handler(exception: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's hook: None leaves an exception nobody expected to Django, which logs it."""
    error = _translated(exception)
    if error is None:
        return None
    return Response(error.body(), status=error.status_code, headers=_headers(exception))


def _translated(exception: Exception) -> ApiError | None:
    match exception:
        case ApiError():
            return exception
        case Http404() | drf_exceptions.NotFound():
            return not_found()
        case django_exceptions.PermissionDenied():
            return ApiError("permission_denied", "You may not do this.", 403)
        case drf_exceptions.PermissionDenied():
            return ApiError("permission_denied", str(exception.detail), 403)
        case drf_exceptions.NotAuthenticated() | drf_exceptions.AuthenticationFailed():
            return ApiError("not_authenticated", str(exception.detail), exception.status_code)
        case drf_exceptions.ValidationError():
            return _validation_error(exception.detail)
        case django_exceptions.ValidationError():
            detail = drf_exceptions.ValidationError(_django_detail(exception)).detail
            return _validation_error(detail)
        case drf_exceptions.ParseError():
            return invalid(str(exception.detail))
        case drf_exceptions.APIException():
            code = "throttled" if exception.status_code == 429 else exception.default_code
            return ApiError(code, str(exception.detail), exception.status_code)
    return None


def _django_detail(exception: django_exceptions.ValidationError) -> Any:
    def details(errors: Sequence[django_exceptions.ValidationError]) -> list[Any]:
        return [
            drf_exceptions.ErrorDetail(message, error.code or "invalid")
            for error in errors
            for message in error.messages
        ]

    if hasattr(exception, "error_dict"):
        found = exception.error_dict.items()
        return {"" if name == NON_FIELD_ERRORS else name: details(errors) for name, errors in found}
    return {"": details(exception.error_list)}


def _flattened(detail: Any, path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Every list of messages with the dotted path of its field: `tags.3`, `""` for the whole."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _flattened(inner, ".".join(str(each) for each in (path, name) if each != ""))
    elif isinstance(detail, list) and any(isinstance(each, Mapping | list) for each in detail):
        for index, inner in enumerate(detail):
            if inner:
                yield from _flattened(inner, f"{path}.{index}".lstrip("."))
    else:
        yield path, detail if isinstance(detail, list) else [detail]


def _validation_error(detail: Any) -> ApiError:
    found = dict(islice(_flattened(detail), MAX_FIELDS))
    codes = {getattr(each, "code", "") for messages in found.values() for each in messages}
    code = "null_character" if codes & NUL_CODES else "invalid"
    fields = {name: [str(each)[:MAX_MESSAGE] for each in found[name]] for name in found}
    whole = fields.pop("", [])
    named = [f"{name}: {messages[0]}" for name, messages in fields.items()]
    message = " ".join(whole) or " ".join(named[:3]) or "The request is not valid."
    return ApiError(code, message, 400, fields)


def _headers(exception: Exception) -> dict[str, str]:
    headers = {}
    if challenge := getattr(exception, "auth_header", None):
        headers["WWW-Authenticate"] = str(challenge)
    if wait := getattr(exception, "wait", None):
        headers["Retry-After"] = str(int(wait))
    return headers


def error_response(request: HttpRequest, error: ApiError, *, shell: bool = True) -> HttpResponse:
    """An error outside a DRF view: JSON for the API and for who asks for it, else a page.

    Without ``shell`` no middleware has seen the request, or what failed may be what the shell
    needs: sessions, the database.
    """
    if wants_json(request):
        return JsonResponse(error.body(), status=error.status_code, headers=_headers(error))
    context = {
        "status": error.status_code,
        "title": HTTPStatus(error.status_code).phrase,
        "message": error.message,
    }
    page = render_to_string("web/error.html", context, request=request if shell else None)
    return HttpResponse(page, status=error.status_code, headers=_headers(error))


def wants_json(request: HttpRequest) -> bool:
    if f"{request.path}/".startswith(API_PREFIXES):
        return True
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    match exception:
        case django_exceptions.RequestDataTooBig():
            error = ApiError("body_too_large", "The request body is too large.", 413)
        case django_exceptions.DisallowedHost():
            error = invalid("This server is not known by this name.", field="Host")
        case django_exceptions.TooManyFilesSent():
            error = invalid("The form holds too many files.")
        case django_exceptions.TooManyFieldsSent():
            error = invalid("The form or the query holds too many fields.")
        case _:
            error = invalid("The request is not valid.")
    return error_response(request, error)


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, ApiError("permission_denied", "You may not do this.", 403))


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, not_found())


def handler500(request: HttpRequest) -> HttpResponse:
    """Django calls it while it handles the exception, from views, middleware and DRF alike."""
    if is_outage(sys.exc_info()[1]):
        return error_response(request, database_unavailable(), shell=False)
    message = "Something went wrong on the server. The operator's log has the details."
    return error_response(request, ApiError("internal", message, 500), shell=False)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    message = "The CSRF token is missing or out of date: reload the page and try again."
    return error_response(request, ApiError("csrf_failed", message, 403))
