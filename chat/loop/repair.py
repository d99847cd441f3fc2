"""Make any history valid for a provider, right before each model call.

Owns the rules that Chat Completions servers hold a history to, the strict ones of local models
included: one leading system message; a user message after it and a user message or a result at the
end; every call exactly one result, directly behind it; nothing empty. Stored rows are never
rewritten. Vendors' further rules belong to their request builders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from chat.loop.calls import parse_arguments
from chat.types import (
    AssistantMessage,
    HistoryMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

Repair: TypeAlias = Literal[
    "systems_merged",
    "users_merged",
    "assistants_merged",
    "empty_dropped",
    "start_dropped",
    "duplicate_call_dropped",
    "orphan_result_dropped",
    "missing_result_filled",
    "result_moved",
    "call_rewritten",
    "prompt_added",
]

MISSING_RESULT = (
    "No result was recorded: the call was interrupted. Whether it took effect is not known."
)
PROMPT = "Continue."

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class Repaired:
    """A valid history and what had to be done for it, each kind once, in the rules' order."""

    messages: tuple[HistoryMessage, ...]
    repairs: tuple[Repair, ...] = ()


def repair(history: Iterable[HistoryMessage]) -> Repaired:
    """A history that satisfies every rule above; repairing it again changes nothing."""
    work = _Repair(list(history))
    work.place_results()
    work.lead_with_system()
    work.drop_empty()
    work.merge_neighbours()
    work.start_with_user()
    work.end_with_input()
    return Repaired(tuple(work.messages), tuple(dict.fromkeys(work.done)))


class _Repair:
    def __init__(self, messages: list[HistoryMessage]) -> None:
        self.messages = messages
        self.done: list[Repair] = []

    def place_results(self) -> None:
        """Put the first result of each call behind its message; fill in those that are missing."""
        results = self._results_by_call()
        placed: list[HistoryMessage] = []
        for index, message in enumerate(self.messages):
            if isinstance(message, ToolMessage):
                continue
            if not isinstance(message, AssistantMessage) or not message.calls:
                placed.append(message)
                continue
            calls = self._sendable_calls(message.calls)
            placed.append(message if calls == message.calls else replace(message, calls=calls))
            placed.extend(self._result_of(call, results.get((index, call.id))) for call in calls)
        self.messages = placed

    def _results_by_call(self) -> dict[tuple[int, str], ToolMessage]:
        """Results by the index of the message that made the call, and the call's id."""
        made_by: dict[str, int] = {}
        results: dict[tuple[int, str], ToolMessage] = {}
        others_since = 0
        for index, message in enumerate(self.messages):
            if isinstance(message, ToolMessage):
                maker = made_by.get(message.call_id)
                if maker is None or (maker, message.call_id) in results:
                    self.done.append("orphan_result_dropped")
                    continue
                results[maker, message.call_id] = message
                if maker < others_since:
                    self.done.append("result_moved")
                continue
            others_since = index
            if isinstance(message, AssistantMessage):
                made_by |= dict.fromkeys((call.id for call in message.calls), index)
        return results

    def _sendable_calls(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        unique: dict[str, ToolCall] = {}
        for call in calls:
            unique.setdefault(call.id, call)
        if len(unique) < len(calls):
            self.done.append("duplicate_call_dropped")
        return tuple(self._sendable(call) for call in unique.values())

    def _sendable(self, call: ToolCall) -> ToolCall:
        """Arguments that are a JSON object and a name that a vendor accepts, or no run goes on."""
        parsed = parse_arguments(call.arguments)
        arguments = "{}" if not parsed else call.arguments
        name = call.name
        if not _NAME.fullmatch(name):
            name = _NOT_IN_NAME.sub("_", name)[:64] or "unnamed"
        if (name, arguments) == (call.name, call.arguments):
            return call
        if parsed is None or name != call.name:
            self.done.append("call_rewritten")
        return replace(call, name=name, arguments=arguments)

    def _result_of(self, call: ToolCall, result: ToolMessage | None) -> ToolMessage:
        if result is None:
            self.done.append("missing_result_filled")
            return ToolMessage(call.id, call.name, MISSING_RESULT, is_error=True)
        return result if result.name == call.name else replace(result, name=call.name)

    def lead_with_system(self) -> None:
        texts = [m.text for m in self.messages if isinstance(m, SystemMessage) and m.text.strip()]
        led: list[HistoryMessage] = [SystemMessage("\n\n".join(texts))] if texts else []
        led += [m for m in self.messages if not isinstance(m, SystemMessage)]
        if led != self.messages:
            self.done.append("systems_merged")
            self.messages = led

    def drop_empty(self) -> None:
        kept = [message for message in self.messages if not _is_empty(message)]
        if len(kept) < len(self.messages):
            self.done.append("empty_dropped")
            self.messages = kept

    def merge_neighbours(self) -> None:
        """Local models' templates want roles to alternate.

        Assistant messages with vendor details stay apart: those are replayed byte for byte.
        """
        merged: list[HistoryMessage] = []
        for message in self.messages:
            last = merged[-1] if merged else None
            match last, message:
                case UserMessage(), UserMessage():
                    merged[-1] = UserMessage(f"{last.text}\n\n{message.text}")
                    self.done.append("users_merged")
                case AssistantMessage(calls=()), AssistantMessage() if not (
                    last.details or message.details
                ):
                    text = "\n\n".join(t for t in (last.text, message.text) if t.strip())
                    merged[-1] = replace(message, text=text)
                    self.done.append("assistants_merged")
                case _:
                    merged.append(message)
        self.messages = merged

    def start_with_user(self) -> None:
        system = [m for m in self.messages[:1] if isinstance(m, SystemMessage)]
        rest = self.messages[len(system) :]
        first = next((i for i, m in enumerate(rest) if isinstance(m, UserMessage)), len(rest))
        if first:
            self.done.append("start_dropped")
            self.messages = system + rest[first:]

    def end_with_input(self) -> None:
        if not self.messages or isinstance(self.messages[-1], AssistantMessage | SystemMessage):
            self.done.append("prompt_added")
            self.messages = [*self.messages, UserMessage(PROMPT)]


def _is_empty(message: HistoryMessage) -> bool:
    match message:
        case UserMessage(text=text) | AssistantMessage(text=text, calls=()):
            return not text.strip()
        case _:
            return False
