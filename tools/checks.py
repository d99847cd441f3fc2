"""System checks: what a developer or an operator got wrong about tools stops the start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from tools.policy import EFFECTS, SETTING, parse_policy
from tools.registry import Tool, registry

#: The names that every provider takes.
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@register("tools")
def check_tools(**kwargs: Any) -> list[CheckMessage]:
    return [message for tool in registry.tools() for message in _faults(tool)]


def _faults(tool: Tool) -> Iterator[CheckMessage]:
    if not NAME.fullmatch(tool.name):
        yield Error(
            f"The tool name {tool.name!r} is one that providers refuse.",
            hint="Use 1 to 64 ASCII letters, digits, underscores and hyphens.",
            obj=tool.origin,
            id="tools.E001",
        )
    if not tool.spec.description.strip():
        yield Error(
            f"The tool {tool.name} has no description.",
            hint="Give the function a docstring: it is what a model is told.",
            obj=tool.origin,
            id="tools.E002",
        )
    if tool.spec.parameters.get("type") != "object":
        yield Error(
            f"The parameters of the tool {tool.name} are not the schema of an object.",
            obj=tool.origin,
            id="tools.E003",
        )
    if tool.effect not in EFFECTS:
        yield Error(
            f"The tool {tool.name} has the unknown effect {tool.effect!r}.",
            hint=f"Use one of {', '.join(EFFECTS)}.",
            obj=tool.origin,
            id="tools.E004",
        )
    if tool.deadline <= 0:
        yield Error(
            f"The deadline of the tool {tool.name} leaves it no time.",
            obj=tool.origin,
            id="tools.E005",
        )


@register("tools")
def check_tool_policy(**kwargs: Any) -> list[CheckMessage]:
    try:
        policy = parse_policy(getattr(settings, SETTING, ""))
    except ImproperlyConfigured as error:
        return [Error(str(error), hint="For example note_update=ask,external=off", id="tools.E006")]
    known = {*registry.names(), *EFFECTS}
    return [
        Error(
            f"{SETTING}: {name!r} is neither a tool nor an effect.",
            hint=f"Effects: {', '.join(EFFECTS)}. Tools: {', '.join(registry.names())}.",
            id="tools.E007",
        )
        for name in policy
        if name not in known
    ]
