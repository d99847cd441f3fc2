"""What holds for every request: what is refused before a view sees it, and what caches may keep.

A query string ends in logs, histories and Referer headers: a token in it is a leaked token.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from web.errors import API_PREFIXES, ApiError, error_response

Handler = Callable[[HttpRequest], HttpResponseBase]

SECRET_NAMES = frozenset({"token", "access_token", "api_key"})

_secret = re.compile(r"nw_[A-Za-z0-9_-]{20,}")


def private(get_response: Handler) -> Handler:
    """Middleware: no cache keeps a response, the browser's neither, unless it says otherwise."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def checked_address(get_response: Handler) -> Handler:
    """Middleware: 400 for what no URL and no cookie may hold."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        error = _refusal(request)
        return get_response(request) if error is None else error_response(request, error)

    return middleware


def _refusal(request: HttpRequest) -> ApiError | None:
    if "\0" in request.path:
        return _nul("path")
    # A quoted cookie may spell NUL in octal, and the session is looked up by what it says.
    if any("\0" in value for value in request.COOKIES.values()):
        return _nul("Cookie")
    if not request.META.get("QUERY_STRING"):
        return None
    for name, values in request.GET.lists():
        if "\0" in name or any("\0" in value for value in values):
            return _nul(name.replace("\0", "\N{REPLACEMENT CHARACTER}"))
        named = name in SECRET_NAMES and request.path.startswith(API_PREFIXES)
        if named or any(_secret.match(value) for value in values):
            message = "Send tokens in the Authorization header, never in a URL; revoke this one."
            return ApiError("invalid", message, 400, {name: [message]})
    return None


def _nul(field: str) -> ApiError:
    message = "The character U+0000 is not allowed."
    return ApiError("null_character", message, 400, {field: [message]})
