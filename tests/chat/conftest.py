"""A lamp whose tools ask: what a person decides on in tests."""

from __future__ import annotations

import asyncio
from typing import Annotated

import pytest
from pydantic import Field

from chat.models import Approval, Run
from chat.runs import lifecycle
from chat.testing import ScriptedProvider, calls, says
from tests.chat.runs.conftest import Stage
from tools.definitions import Preview, ToolContext
from tools.registry import registry
from tools.registry import tool as make_tool
from tools.threads import unit_of_work


class Lamp:
    """What the tools of a test do: a lamp whose state has a version, and a free look at it."""

    def __init__(self) -> None:
        self.version = 1
        self.step = 1
        self.before = "white"
        self.set: list[str] = []
        self.fault: Exception | None = None


@pytest.fixture
def lamp():
    state = Lamp()

    def preview(context: ToolContext, colour: str) -> Preview:
        if state.fault is not None:
            raise state.fault
        return Preview(f"Make it {colour}.", f"-{state.before}\n+{colour}", str(state.version))

    with registry.temporarily(alone=True):

        @make_tool(effect="external", preview=preview)
        def lamp_set(context: ToolContext, colour: Annotated[str, Field(min_length=1)]) -> str:
            """Change the colour."""
            state.set.append(colour)
            state.version += state.step
            return f"{colour} at {context.approved_version}"

        @make_tool(effect="write", preview=preview)
        def lamp_dim(context: ToolContext, colour: str) -> str:
            """Change the colour so that it can be changed back."""
            state.set.append(colour)
            return "dim"

        @make_tool(effect="external")
        def lamp_fade(context: ToolContext, seconds: int) -> str:
            """Fade away."""
            return f"{seconds} s"

        @make_tool(effect="read")
        def lamp_look(context: ToolContext) -> str:
            """Look."""
            return "bright"

        yield state


class Waiting:
    """A run that waits for a person's word on lamps of some colours, and what carries it on."""

    def __init__(self, user, colours, conversation_id=None, fade=None) -> None:
        asked = [("lamp_set", {"colour": colour}) for colour in colours]
        asked += [("lamp_fade", {"seconds": fade})] if fade is not None else []
        self.provider = ScriptedProvider(calls(*asked), says("Done."))
        self.run: Run = asyncio.run(self._begin(user, conversation_id))

    async def _begin(self, user, conversation_id) -> Run:
        run = await unit_of_work(
            lifecycle.run_start, owner=user, content="Go.", conversation_id=conversation_id
        )
        await self._carry(run)
        return run

    async def _carry(self, run: Run) -> None:
        async with Stage(self.provider) as runtime:
            await runtime.carry(run)

    def go_on(self) -> Run:
        asyncio.run(self._carry(self.run))
        self.run.refresh_from_db()
        return self.run

    @property
    def approvals(self) -> list[Approval]:
        rows = Approval.objects.filter(run=self.run).select_related("call")
        return list(rows.order_by("call__position"))


@pytest.fixture
def waiting(user, lamp, units):
    """``waiting("red", "blue")``: a run of ``user`` that waits for two words."""

    def make(*colours, of=user, **options) -> Waiting:
        return Waiting(of, colours or ("red",), **options)

    return make
