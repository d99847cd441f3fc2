"""What a tool is: its spec for the model, its effect, the context it runs in, what it returns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from uuid import UUID

#: ``read`` changes nothing, ``write`` changes what our own undo can take back, ``external``
#: leaves the machine or cannot be undone.
Effect = Literal["read", "write", "external"]

Content: TypeAlias = str | Mapping[str, object] | Sequence[object]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool: ``parameters`` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """On whose behalf and where a tool runs. ``deadline`` is in seconds of ``time.monotonic``.

    ``approved_version`` is the version of the target (as the tool's preview named it) that a
    person approved a change of; "" where nobody was asked. ``together`` are the calls before this
    one that they approved in the same go. ``tainted``: the model was shown text from outside, which
    may be in what it writes now.
    """

    user_id: int
    deadline: float
    conversation_id: UUID | None = None
    message_id: UUID | None = None
    run_id: UUID | None = None
    call_id: str = ""
    approved_version: str = ""
    together: tuple[str, ...] = ()
    tainted: bool = False

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())


@dataclass(frozen=True, slots=True)
class Preview:
    """What a call would do, for a person who decides: words, and a diff where there is one.

    ``version`` names the state of the target that this was made from; "" where there is no target.
    ``earlier`` are the versions before it, as far back as the calls ``together`` with this one made
    all the changes since; a tool that cannot tell leaves it empty.
    """

    text: str
    diff: str | None = None
    version: str = ""
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Touched:
    """Something of the user's that a tool call read or changed, for a link beside the call."""

    kind: str
    id: str
    title: str


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A result with what a page shows beside it: ``content`` alone is for the model.

    ``from_outside``: it holds text that neither the person nor a model wrote for them. What an
    ``external`` tool answers is always taken for that.
    """

    content: Content
    summary: str = ""
    touched: tuple[Touched, ...] = ()
    from_outside: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call: ``content`` is clean text within the size limit."""

    content: str
    status: Literal["done", "error", "skipped", "unknown"] = "done"
    is_error: bool = False
    duration_ms: int = 0
    summary: str = ""
    touched: tuple[Touched, ...] = ()
    from_outside: bool = False
