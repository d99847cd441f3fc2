"""Text that came from a machine, made fit for a text or jsonb column and for a provider.

Owns cleaning (NUL, surrogates) and the size limit of results. Text from a person is not cleaned
but refused, elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

RESULT_BYTES = 12 * 1024


def clean(text: str) -> str:
    """Without NUL; a pair of surrogates is joined, a lone one replaced by U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: Any) -> Any:
    """``value`` with every string in it cleaned."""
    match value:
        case str():
            return clean(value)
        case Mapping():
            return {
                clean(key) if isinstance(key, str) else key: clean_json(item)
                for key, item in value.items()
            }
        case list() | tuple():
            return [clean_json(item) for item in value]
        case _:
            return value


def compact_json(value: object) -> str:
    return json.dumps(
        clean_json(value),
        cls=DjangoJSONEncoder,
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )


def capped(text: str, limit: int = RESULT_BYTES) -> str:
    """``text`` in at most ``limit`` bytes of UTF-8, cut on a character boundary and saying so."""
    data = text.encode()
    if len(data) <= limit:
        return text
    longest_marker = len(_marker(len(data)))
    kept = data[: limit - longest_marker].decode(errors="ignore")
    return kept + _marker(len(data) - len(kept.encode()))


def _marker(count: int) -> str:
    return f"[truncated {count} bytes]"
