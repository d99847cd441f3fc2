"""How the loop takes the calls of a model's message: their ids, their raw argument text.

Whether arguments fit the tool's schema belongs to ``tools.invocation``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection

import msgspec

from chat.events import CallShown, ToolUse
from chat.types import RequestedCall, ToolCall

MAX_LENGTH = 200

#: Finish reasons after which the arguments of a call can be taken for whole.
_WHOLE = frozenset({"end_turn", "tool_use", "stop_sequence"})

_object = msgspec.json.Decoder(dict[str, object])


def mint_call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


class CallIds:
    """Gives each call an id that is unique in its conversation and fit to be sent anywhere."""

    def __init__(self, used: Collection[str], mint: Callable[[], str]) -> None:
        self._used = set(used)
        self._mint = mint

    def take(self, requested: tuple[RequestedCall, ...]) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(self._id(call.id), call.name[:MAX_LENGTH], call.arguments, call.extra)
            for call in requested
        )

    def _id(self, given: str | None) -> str:
        chosen = given if given and _is_usable(given) else self._mint()
        while chosen in self._used:
            chosen = self._mint()
        self._used.add(chosen)
        return chosen


def parse_arguments(text: str) -> dict[str, object] | None:
    """The arguments, or None where they are no JSON object. Blank and ``null`` mean ``{}``."""
    if is_blank(text):
        return {}
    try:
        return _object.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def is_blank(text: str) -> bool:
    """Whether the model sent nothing: a tool without parameters."""
    return text.strip() in {"", "null"}


def is_cut_off(call: ToolCall, finish_reason: str) -> bool:
    """Whether a call may lack some of its arguments, as its message ended in the middle of them."""
    if finish_reason in _WHOLE:
        return False
    return is_blank(call.arguments) or parse_arguments(call.arguments) is None


def shown(calls: tuple[ToolCall, ...]) -> ToolUse:
    """The calls as clients see them: ``{}`` where the model sent nothing, else its raw text."""
    return ToolUse(
        calls=tuple(
            CallShown(
                id=call.id,
                name=call.name,
                arguments="{}" if is_blank(call.arguments) else call.arguments,
            )
            for call in calls
        )
    )


def _is_usable(call_id: str) -> bool:
    characters = call_id.isascii() and call_id.isprintable() and " " not in call_id
    return characters and len(call_id) <= MAX_LENGTH
