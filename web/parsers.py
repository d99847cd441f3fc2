"""JSON bodies within bounds: an object, valid UTF-8, no NUL, no NaN, no key twice, neither deep nor
countless.

How many bytes a body may have is decided before it gets here, at the ASGI edge.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import IO, Any

import msgspec
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, MultiPartParser

from web.errors import MAX_FIELDS, MAX_NAME, ApiError, invalid

MAX_DEPTH = 100
MAX_VALUES = 200_000
MAX_DIGITS = 100

_brackets = re.compile(rb"[\[\]{}]")
_lone_surrogate = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_long_number = re.compile(rb"\d{%d}" % (MAX_DIGITS + 1))


class BoundedJSONParser(BaseParser):
    """The API's only parser: what it returns is a dictionary that can be stored as it is."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        return parsed(stream.read())


class FormParser(MultiPartParser):
    """A form with a file."""

    def parse(self, *args: Any, **options: Any) -> Any:
        try:
            return super().parse(*args, **options)
        except ParseError:
            message = (
                "The form cannot be read: send Content-Type: multipart/form-data with the boundary"
                " that stands between its parts."
            )
            raise invalid(message) from None


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object that `body` holds; a 400 that says what is wrong with it otherwise."""
    pairs = _bounded_pairs(body)
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        half = _lone_surrogate.search(body.replace(rb"\\", b""))
        reason = (
            f"{half[0].decode()} is half of a surrogate pair, which is no text" if half else error
        )
        raise invalid(f"The body is not valid JSON: {reason}.") from None
    if not isinstance(value, dict):
        raise invalid("The body must be a JSON object.")
    if b"\\u0000" in body and (paths := list(islice(_nul_paths(value), MAX_FIELDS))):
        message = "The character U+0000 is not allowed."
        raise ApiError("null_character", message, 400, dict.fromkeys(paths, [message]))
    # Readers disagree on which of two counts: what was checked elsewhere must be what is done.
    if pairs != _pair_count(value):
        json.loads(body, object_pairs_hook=_refuse_repeated)
    return value


def _bounded_pairs(body: bytes) -> int:
    """How many keys with values are written in the body, if it is JSON.

    What costs much to build is refused before anything is built: C loops over the whole only.
    """
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    _check_count(unescaped.count(b'"') // 4)
    outside_strings = b"".join(unescaped.split(b'"')[::2])
    _check_count(sum(outside_strings.count(mark) for mark in (b",", b"[", b"{")))
    if _long_number.search(outside_strings):
        raise invalid(f"A number in the body has more than {MAX_DIGITS} digits.")
    depth = 0
    for bracket in _brackets.finditer(outside_strings):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth < 0:
            break  # Not JSON: the decoder stops at the same place and says so.
        if depth > MAX_DEPTH:
            raise invalid(f"The body is nested more than {MAX_DEPTH} levels deep.")
    return outside_strings.count(b":")


def _check_count(values: int) -> None:
    if values > MAX_VALUES:
        raise invalid(f"The body has more than {MAX_VALUES} values.")


def _pair_count(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_pair_count, value.values()))
    return sum(map(_pair_count, value)) if isinstance(value, list) else 0


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    counted = Counter(name for name, _ in pairs)
    if repeated := [name[:MAX_NAME] for name, count in counted.items() if count > 1]:
        message = "Give this once."
        fields = dict.fromkeys(repeated[:MAX_FIELDS], [message])
        raise ApiError("invalid", f"{repeated[0]}: {message}", 400, fields)


def _nul_paths(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if "\0" in value:
            yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            name = key.replace("\0", "\N{REPLACEMENT CHARACTER}")
            here = f"{path}.{name}".lstrip(".")
            if "\0" in key:
                yield here
            yield from _nul_paths(inner, here)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _nul_paths(inner, f"{path}.{index}".lstrip("."))
