"""Token counts for providers that report none: four characters a token, flagged as an estimate."""

from __future__ import annotations

import msgspec

from chat.types import (
    AssistantMessage,
    Completion,
    HistoryMessage,
    ModelRequest,
    ToolMessage,
    Usage,
)

CHARACTERS_PER_TOKEN = 4


def estimated_usage(request: ModelRequest, completion: Completion) -> Usage:
    asked = sum(map(_characters, request.messages)) + sum(
        len(tool.name) + len(tool.description) + len(msgspec.json.encode(tool.parameters))
        for tool in request.tools
    )
    answered = len(completion.text) + len(completion.thinking) + len(completion.refusal)
    answered += sum(len(call.name) + len(call.arguments) for call in completion.calls)
    return Usage(fresh_input=_tokens(asked), output=_tokens(answered), estimated=True)


def _characters(message: HistoryMessage) -> int:
    match message:
        case ToolMessage(content=content):
            return len(content)
        case AssistantMessage(text=text, calls=calls):
            return len(text) + sum(len(call.name) + len(call.arguments) for call in calls)
        case _:
            return len(message.text)


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)
