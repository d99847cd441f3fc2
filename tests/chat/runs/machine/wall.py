"""What the tools of the machine do: a wall of a colour, with words on it, and work that takes long.

Owns the wall and what was done to it, call by call; whether that was to be done is ``account``'s.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from uuid import UUID

from tests.chat.runs.machine.processes import Attempt, process
from tools.definitions import Preview, ToolContext
from tools.registry import registry
from tools.registry import tool as make_tool

#: One call: its conversation, and its id there.
Key: TypeAlias = tuple[UUID, str]

#: What changes the wall; a person who is asked about it is shown what.
PAINTING = ("paint", "add")


@dataclass(frozen=True)
class Seen:
    """What a call would do: its value, and what it takes away and adds at a version of the wall."""

    value: int
    version: int
    lines: str


@dataclass(frozen=True)
class Deed:
    """A call that ran, and what it did."""

    key: Key
    name: str
    seen: Seen
    attempt: Attempt = field(repr=False)


class Wall:
    def __init__(self) -> None:
        self.colour = 0
        #: Who made each change, None where no call did.
        self.changes: list[Key | None] = []
        self.deeds: list[Deed] = []
        #: Whether the tool ``work`` is described in other words, as after an update.
        self.is_reworded = False

    @property
    def version(self) -> int:
        return len(self.changes) + 1

    def lines(self, name: str, value: int) -> str | None:
        """The diff of a call that is a painting."""
        return {"paint": f"-{self.colour}\n+{value}", "add": f"+{value}"}.get(name)

    def seen(self, name: str, value: int) -> Seen:
        return Seen(value, self.version, self.lines(name, value) or "")

    def change(self, by: Key | None = None) -> None:
        self.changes.append(by)

    def changed_by(self, keys: Collection[Key], *, since: int) -> bool:
        """Whether these calls made all the changes since that version."""
        return all(by in keys for by in self.changes[since - 1 :])

    def do(self, context: ToolContext, name: str, value: int) -> None:
        key = (_conversation_id(context), context.call_id)
        self.deeds.append(Deed(key, name, self.seen(name, value), process.get()))

    def preview(self, context: ToolContext, name: str, value: int) -> Preview:
        together = [(_conversation_id(context), call_id) for call_id in context.together]
        earlier = [v for v in range(1, self.version) if self.changed_by(together, since=v)]
        return Preview(
            f"{name} {value}",
            self.lines(name, value),
            str(self.version),
            tuple(map(str, earlier)),
        )

    def reword(self) -> None:
        self.is_reworded = not self.is_reworded
        tool = registry.get("work")
        assert tool is not None
        spec = replace(tool.spec, description=f"Work{' hard' * self.is_reworded}.")
        registry._registry["work"] = replace(tool, spec=spec)


def _conversation_id(context: ToolContext) -> UUID:
    assert context.conversation_id is not None
    return context.conversation_id


@contextmanager
def tools_of(walls: list[Wall]) -> Iterator[None]:
    """The tools that there are, all at the first wall of the list, which may be another later."""

    def preview_paint(context: ToolContext, value: int = 0) -> Preview:
        return walls[0].preview(context, "paint", value)

    def preview_add(context: ToolContext, value: int = 0) -> Preview:
        return walls[0].preview(context, "add", value)

    with registry.temporarily(alone=True):

        @make_tool(effect="read")
        def look(context: ToolContext, value: int = 0) -> str:
            """Look."""
            return "z" * 2_000 * value

        @make_tool(effect="external", preview=preview_paint)
        def paint(context: ToolContext, value: int = 0) -> str:
            """Paint the wall."""
            wall = walls[0]
            wall.do(context, "paint", value)
            wall.change(wall.deeds[-1].key)
            wall.colour = value
            return f"painted {value}"

        @make_tool(effect="write", preview=preview_add)
        def add(context: ToolContext, value: int = 0) -> str:
            """Write on the wall."""
            wall = walls[0]
            wall.do(context, "add", value)
            wall.change(wall.deeds[-1].key)
            return f"added {value}"

        @make_tool(effect="write", deadline=600.0)
        async def work(context: ToolContext, value: int = 0) -> str:
            """Work."""
            walls[0].do(context, "work", value)
            await process.get().work_in_tool()
            return "worked"

        @make_tool(effect="read", deadline=600.0, repeatable=True)
        async def watch(context: ToolContext, value: int = 0) -> str:
            """Watch for long."""
            walls[0].do(context, "watch", value)
            await process.get().work_in_tool()
            return "watched"

        yield
