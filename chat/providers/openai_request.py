"""A ``ModelRequest`` in the words of OpenAI's Chat Completions, with each vendor's differences.

Takes a history that ``loop.repair`` made valid: what is left here is the wire format, and which
vendor fields go back to the vendor that they came from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from chat.types import (
    AssistantMessage,
    HistoryMessage,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tools.definitions import ToolSpec

#: Parts of a request that some server refuses and another demands; on or off per vendor and model.
Option: TypeAlias = Literal[
    "stream_options", "tool_choice", "reasoning_content", "reasoning_details", "extra_content"
]

#: Words in a refusal that name an option. The first three are the field's own name.
_NAMED: tuple[tuple[str, Option], ...] = (
    ("stream_options", "stream_options"),
    ("include_usage", "stream_options"),
    ("tool_choice", "tool_choice"),
    ("reasoning_content", "reasoning_content"),
    ("reasoning_details", "reasoning_details"),
    ("extra_content", "extra_content"),
    ("thought_signature", "extra_content"),
    ("thought signature", "extra_content"),
)

_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_NOT_IN_PLAIN_SCHEMA = frozenset({"$id", "$schema", "additionalProperties", "strict"})


@dataclass(frozen=True, slots=True)
class Quirks:
    """How a vendor differs. ``short_call_ids``: exactly nine letters and digits; ``think_tags``:
    a model may write its thinking into the answer."""

    options: frozenset[Option] = field(
        default_factory=lambda: frozenset[Option]({"stream_options", "tool_choice"})
    )
    short_call_ids: bool = False
    plain_schemas: bool = False
    think_tags: bool = False


def option_named(message: str) -> Option | None:
    """The option that a refusal is about, if any."""
    text = message.lower()
    return next((option for words, option in _NAMED if words in text), None)


def body_of(
    request: ModelRequest, *, provider: str, quirks: Quirks, options: frozenset[Option]
) -> bytes:
    """The JSON body. No key is sent that a plain request does not need."""
    writer = _Writer(provider, quirks, options)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [writer.message(message) for message in request.messages],
        "stream": True,
    }
    if "stream_options" in options:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [writer.tool(spec) for spec in request.tools]
        if request.tool_choice == "none" and "tool_choice" in options:
            body["tool_choice"] = "none"
    return msgspec.json.encode(body)


@dataclass(frozen=True, slots=True)
class _Writer:
    provider: str
    quirks: Quirks
    options: frozenset[Option]

    def message(self, message: HistoryMessage) -> dict[str, Any]:
        match message:
            case SystemMessage():
                return {"role": "system", "content": message.text}
            case UserMessage():
                return {"role": "user", "content": message.text}
            case ToolMessage():
                return {
                    "role": "tool",
                    "tool_call_id": self._call_id(message.call_id),
                    "content": _result_text(message),
                }
            case AssistantMessage():
                return self._assistant(message)

    def tool(self, spec: ToolSpec) -> dict[str, Any]:
        parameters = dict(spec.parameters) or {"type": "object", "properties": {}}
        if self.quirks.plain_schemas:
            parameters = _plain(parameters)
        function = {"name": spec.name, "description": spec.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def _assistant(self, message: AssistantMessage) -> dict[str, Any]:
        at_home = message.provider == self.provider
        sent: dict[str, Any] = {"role": "assistant", "content": message.text}
        if message.calls:
            sent["content"] = message.text or None
            sent["tool_calls"] = [self._call(call, at_home=at_home) for call in message.calls]
        if at_home:
            sent |= self._replayed(message)
        return sent

    def _replayed(self, message: AssistantMessage) -> dict[str, Any]:
        """Vendor fields that belong to this vendor. Plain turns go without their reasoning."""
        wanted = self.options & message.details.keys()
        if not message.calls:
            wanted -= {"reasoning_content"}
        return {name: message.details[name] for name in sorted(wanted)}

    def _call(self, call: ToolCall, *, at_home: bool) -> dict[str, Any]:
        sent: dict[str, Any] = {
            "id": self._call_id(call.id),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments.strip() or "{}"},
        }
        if at_home and "extra_content" in self.options and "extra_content" in call.extra:
            sent["extra_content"] = call.extra["extra_content"]
        return sent

    def _call_id(self, call_id: str) -> str:
        if not self.quirks.short_call_ids or _SHORT_ID.fullmatch(call_id):
            return call_id
        return hashlib.sha256(call_id.encode()).hexdigest()[:9]


def _result_text(message: ToolMessage) -> str:
    """There is no flag for an error on this wire, so the text says it."""
    if message.is_error and not message.content.lower().startswith("error"):
        return f"Error: {message.content}"
    return message.content


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without keywords that strict vendors refuse; properties keep any name."""
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NOT_IN_PLAIN_SCHEMA:
            continue
        if key in ("properties", "$defs") and isinstance(value, dict):
            plain[key] = {name: _plain_value(inner) for name, inner in value.items()}
        else:
            plain[key] = _plain_value(value)
    return plain


def _plain_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _plain(value)
    return [_plain_value(item) for item in value] if isinstance(value, list) else value
