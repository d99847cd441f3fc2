"""`ETag` and `If-Match`: a change says which version it is based on.

Owns the headers. The version is a column of the row; the service that changes it compares again
inside its UPDATE, and whoever owns the row words the conflict.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from rest_framework.request import Request

from web.errors import ApiError, invalid

View = TypeVar("View", bound=Callable[..., Any])

_entity_tag = re.compile(r'(?:W/)?"([^"]*)"|([^\s",]+)')
_one = rf"\s*(?:{_entity_tag.pattern})\s*"
_versions = re.compile(rf"{_one}(?:,{_one})*,?\s*")


def etag(version: int) -> str:
    """The `ETag` header of a row at `version`."""
    return f'"{version}"'


def conditional(view: View) -> View:
    """Mark a view method that honours `If-Match`, for the OpenAPI document."""
    view.conditional = True  # type: ignore[attr-defined]
    return view


def expected_version(
    request: Request, *, current: int, conflict: Callable[[int], ApiError]
) -> int | None:
    """The version that the change is based on, or None where any will do (absent, or `*`).

    Raises `conflict(current)` when `If-Match` names other versions only. Quotes are optional, and
    a weak tag counts as strong: proxies that compress weaken the tags that they pass on.
    """
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return None
    if len(header) > 1000 or not _versions.fullmatch(header):
        raise invalid('Write If-Match as "3", as a list of these, or as *.', field="If-Match")
    named = {quoted or bare for quoted, bare in _entity_tag.findall(header)}
    if str(current) not in named:
        raise conflict(current)
    return current
