"""One gate: no tool, whoever brought it, runs unasked where it is to be asked for."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.utils.module_loading import module_has_submodule

from chat.models import Approval, Run
from chat.testing import ScriptedProvider, calls, says
from tools.definitions import ToolContext
from tools.invocation import invoke
from tools.policy import operator_policy
from tools.registry import Tool, registry
from tools.threads import unit_of_work

pytestmark = pytest.mark.django_db


def fitting(schema: dict[str, Any]) -> Any:
    """A value that the schema of one argument takes."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "integer":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return []
        case "object":
            return {}
        case _:
            return str(UUID(int=1)) if schema.get("format") == "uuid" else "x"


def arguments(tool: Tool) -> dict[str, Any]:
    schema: Any = tool.spec.parameters
    return {name: fitting(schema["properties"][name]) for name in schema.get("required", ())}


@pytest.fixture
def ran(settings):
    """Every registered tool, with a recorder in the place of what it does; all are asked for."""
    settings.NOTEWIRE_TOOL_POLICY = {"read": "ask", "write": "ask", "external": "ask"}
    seen: list[str] = []

    def recording(tool: Tool) -> Tool:
        def run(context: ToolContext, **bound: object) -> str:
            seen.append(tool.name)
            return "ran"

        return replace(tool, implementation=run, preview=None)

    with registry.temporarily(*map(recording, registry.tools()), alone=True):
        yield seen


def test_every_source_of_tools_is_in_the_registry():
    sources = {
        f"{app.name}.tools"
        for app in apps.get_app_configs()
        if app.module is not None and module_has_submodule(app.module, "tools")
    }
    assert sources
    assert {tool.source.rpartition(".")[0] for tool in registry.tools()} >= sources


async def test_no_tool_runs_at_the_gate_without_a_word(ran):
    for tool in registry.tools():
        outcome = await invoke(
            name=tool.name,
            arguments=json.dumps(arguments(tool)),
            context=ToolContext(user_id=1, deadline=time.monotonic() + 10),
            policy=operator_policy(),
        )
        assert outcome.status == "skipped", tool.name
    assert ran == []


async def test_a_run_asks_about_every_tool_and_runs_none(stage, start, ran):
    wanted = [(tool.name, arguments(tool)) for tool in registry.tools()]
    run = await start("Do everything.")
    async with stage(ScriptedProvider(calls(*wanted), says("Done."))) as runtime:
        await runtime.carry(run)

    def asked():
        names = Approval.objects.order_by("call__position").values_list("call__name", flat=True)
        return Run.objects.get(id=run.id).status, list(names)

    assert await unit_of_work(asked) == ("awaiting_approval", [name for name, _ in wanted])
    assert ran == []
