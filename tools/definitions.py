"""What a tool is: its spec for the model, its effect, the context it runs in, what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

Effect = Literal["read", "write", "external"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool: ``parameters`` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """On whose behalf and where a tool runs. ``deadline`` is in seconds of ``time.monotonic``."""

    user_id: int
    deadline: float
    conversation_id: UUID | None = None
    message_id: UUID | None = None
    run_id: UUID | None = None
    call_id: str = ""
