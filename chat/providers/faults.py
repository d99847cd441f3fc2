"""What a vendor says when something went wrong, as a ``Fault``: every dialect, no secrets.

Owns the reading of error bodies and which kinds are worth another try. When a try is made belongs
to ``http``, how it is told to the person to ``openai``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import msgspec

from chat.types import Fault
from tools.text import clean

_LONGEST_MESSAGE = 1000
_LONGEST_WORD = 100

_SECRETS = re.compile(
    r"\b(?:bearer\s+|(?:sk|gsk|rk|pk|xai|nvapi|hf|nw)[-_])[\w.*+/=-]{6,}|\bAIza[\w-]{20,}", re.I
)

#: A later try of these can work. A 500 is retried before the stream begins, not told as passing.
_PASSING_STATUSES = frozenset({408, 409, 429, 502, 503, 504, 529})
_PASSING_TYPES = frozenset(
    {"rate_limit_exceeded", "rate_limit_error", "overloaded_error", "throttling_error"}
)

#: Money does not come back within seconds. Vendors have many words for it.
_FUNDS = re.compile(r"quota|billing|balance|credit|payment|spend|budget|hard_limit", re.I)


def fault_of(error: Any, *, status: int | None = None) -> Fault:
    """The fault in an error object, whatever its dialect; ``status`` is the answer's own."""
    if isinstance(error, list):
        error = error[0] if error else None
    if isinstance(error, dict) and error.get("error"):
        return fault_of(error["error"], status=status)
    if not isinstance(error, dict):
        error = {"message": error} if isinstance(error, str) else {}
    code = error.get("code")
    if not isinstance(code, int | str) or isinstance(code, bool):
        code = None
    fault = Fault(
        type=_word(error.get("type")) or "provider_error",
        message=_message(error),
        code=_word(code) if isinstance(code, str) else code,
        status=status or _status_in(code) or _status_in(error.get("status_code")),
    )
    return replace(fault, retryable=_is_passing(fault))


def fault_of_body(body: bytes, *, status: int) -> Fault:
    """The fault in the body of an answer that is not a 200."""
    try:
        error = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        error = None
    return fault_of(error, status=status)


def is_out_of_funds(fault: Fault) -> bool:
    """Whether quota or balance is used up: trying again is useless until someone pays."""
    return fault.status == 402 or bool(_FUNDS.search(f"{fault.type} {fault.code}"))


def redact(text: str, secret: str = "") -> str:
    """The text without ``secret`` and without whatever else looks like a key."""
    if secret:
        text = text.replace(secret, "[key]")
    return _SECRETS.sub("[key]", text)


def _word(value: Any) -> str | None:
    return redact(clean(value))[:_LONGEST_WORD] or None if isinstance(value, str) else None


def _is_passing(fault: Fault) -> bool:
    if is_out_of_funds(fault):
        return False
    return fault.status in _PASSING_STATUSES or fault.type in _PASSING_TYPES


def _message(error: dict[str, Any]) -> str | None:
    message = error.get("message") or error.get("detail")
    if isinstance(message, list):
        parts = (part.get("msg") for part in message if isinstance(part, dict))
        message = "; ".join(part for part in parts if isinstance(part, str))
    if not isinstance(message, str) or not message.strip():
        return None
    told = redact(clean(message))
    return told if len(told) <= _LONGEST_MESSAGE else told[:_LONGEST_MESSAGE] + "…"


def _status_in(code: Any) -> int | None:
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    return code if isinstance(code, int) and 400 <= code <= 599 else None
