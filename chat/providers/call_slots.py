"""Fragments of tool calls to whole calls: which fragment belongs to which call.

Vendors leave out the index, the id or both, repeat or split names, and send arguments as objects;
the rules here give one answer for all of them. Whether arguments parse is the loop's question.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from chat.types import RequestedCall
from tools.text import clean, clean_json


class _Function(msgspec.Struct):
    name: Any = None
    arguments: Any = None


class CallDelta(msgspec.Struct):
    """One entry of ``delta.tool_calls``. ``Any``: vendors differ in the type."""

    index: Any = None
    id: Any = None
    function: _Function | None = None
    extra_content: Any = None


class _Slot:
    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: dict[str, Any] = {}

    def has_whole_arguments(self) -> bool:
        text = "".join(self.arguments)
        if not text.rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads(text), dict)
        except (ValueError, RecursionError):
            return False


class CallSlots:
    """The calls of one message, in the order in which they began."""

    def __init__(self, known_tools: frozenset[str]) -> None:
        self._known = known_tools
        self._slots: list[_Slot] = []
        self._by_index: dict[int | str, _Slot] = {}

    def take(self, deltas: Sequence[CallDelta]) -> None:
        """The entries of one chunk; without an index, two entries of a chunk are two calls."""
        taken: list[_Slot] = []
        for delta in deltas:
            function = delta.function or _Function()
            name = function.name if isinstance(function.name, str) else ""
            call_id = str(delta.id) if delta.id else ""
            arguments = _arguments_text(function.arguments)
            slot = self._slot_for(delta.index, call_id, name, arguments, taken)
            slot.id = slot.id or call_id
            slot.name = self._name(slot.name, name)
            if arguments:
                slot.arguments.append(arguments)
            if isinstance(delta.extra_content, dict):
                slot.extra["extra_content"] = slot.extra.get("extra_content", {}) | (
                    delta.extra_content
                )
            taken.append(slot)

    def requested(self) -> tuple[RequestedCall, ...]:
        """The calls, but for slots in which nothing ever came."""
        return tuple(
            RequestedCall(
                id=clean(slot.id) or None,
                name=clean(slot.name),
                arguments=clean("".join(slot.arguments)),
                extra=clean_json(slot.extra),
            )
            for slot in self._slots
            if slot.id or slot.name or slot.arguments
        )

    def _slot_for(
        self, index: Any, call_id: str, name: str, arguments: str, taken: list[_Slot]
    ) -> _Slot:
        if isinstance(index, int | str):
            slot = self._by_index.get(index)
            if slot is None or self._is_another(slot, call_id, name, arguments):
                slot = self._by_index[index] = self._open()
            return slot
        if call_id:
            same = [slot for slot in self._slots if slot.id == call_id]
            return same[0] if same else self._open()
        last = self._slots[-1] if self._slots else None
        if last is None:
            return self._open()
        renamed = bool(name) and not last.arguments and self._name(last.name, name) != last.name
        other_name = bool(name) and name != last.name and not renamed
        if name and (other_name or last in taken or self._is_another(last, "", name, arguments)):
            return self._open()
        return last

    def _is_another(self, slot: _Slot, call_id: str, name: str, arguments: str) -> bool:
        """Whether a fragment for this slot begins a further call all the same."""
        if call_id and slot.id:
            return call_id != slot.id
        begins = bool(name) and arguments.lstrip().startswith("{")
        return begins and slot.has_whole_arguments()

    def _open(self) -> _Slot:
        slot = _Slot()
        self._slots.append(slot)
        return slot

    def _name(self, known: str, fragment: str) -> str:
        """A repeated name is ignored; a fragment counts where it leads to a tool's name."""
        if not known or not fragment or fragment == known:
            return known or fragment
        joined = known + fragment
        return joined if any(name.startswith(joined) for name in self._known) else known


def _arguments_text(arguments: Any) -> str:
    """JSON text as it came; an object, or anything else that is no text, is written compactly."""
    if arguments is None:
        return ""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
