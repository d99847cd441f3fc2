"""Who may import whom, what the levels of ``chat`` may see, who may talk to the network."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.tree import PACKAGES, SCRIPTS, Module, Tree, within

MAY_IMPORT: dict[str, frozenset[str]] = {
    "config": frozenset(),
    "web": frozenset(),
    "tools": frozenset(),
    "accounts": frozenset({"web"}),
    "notes": frozenset({"tools", "web"}),
    "projects": frozenset({"tools", "web"}),
    "chat": frozenset({"tools", "web", "notes", "projects", "accounts"}),
}

#: 5 is start-up, which may see everything.
LEVELS = {
    "chat.types": 0,
    "chat.events": 0,
    "chat.exceptions": 0,
    "chat.providers": 1,
    "chat.loop": 2,
    "chat.models": 3,
    "chat.migrations": 3,
    "chat.transcript": 3,
    "chat.runs": 3,
    "chat.wire": 4,
    "chat.api": 4,
    "chat.openai_api": 4,
    "chat.pages": 4,
    "chat.admin": 4,
    "chat.management": 4,
    "chat.templatetags": 4,
    "chat.apps": 5,
    "chat.checks": 5,
}
DOUBLES = "chat.testing"
DOORS = 4

FRAMEWORKS = ("django", "rest_framework", "procrastinate", "psycopg")
SETTINGS_READERS = {"chat/providers/catalogue.py": "django.conf.settings"}

CLIENTS = (
    "httpx",
    "httpx2",
    "httpx_aiohttp",
    "aiohttp",
    "requests",
    "urllib3",
    "urllib.request",
    "http.client",
)
CLIENT_PLACES = ("chat/providers/http.py", "tools/outbound/", "bootstrap.py")


def package_imports(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if module.path in SCRIPTS:
            continue
        allowed = MAY_IMPORT[module.package] | {module.package}
        for found in module.imports:
            other = found.target.split(".")[0]
            if found.by_string and module.package == "config":
                continue
            if other in (*PACKAGES, "tests") and other not in allowed:
                yield module.at(found.line, f"{module.package} must not import {found.target}")


def doubles_stay_in_tests(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for found in module.imports:
            if within(found.target, DOUBLES) and module.name != DOUBLES:
                yield module.at(found.line, f"product code must not import {DOUBLES}")


def chat_levels(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if module.package != "chat" or module.name in {"chat", DOUBLES}:
            continue
        level = _level(module.name)
        if level is None:
            yield module.at(1, f"{module.name} has no level: say in LEVELS where it belongs")
            continue
        for found in module.imports:
            other = _level(found.target)
            if other is not None and other > level:
                yield module.at(found.line, f"level {level} must not import {found.target}")
            if level == DOORS and within(found.target, "chat.providers"):
                yield module.at(found.line, f"doors never touch providers: {found.target}")


def pure_levels(tree: Tree) -> Iterator[str]:
    """Values, vendors and the loop know no framework, not even through what they import."""
    for module in tree.modules:
        level = _level(module.name)
        if level is None or level > 2:
            continue
        if level == 1:
            yield from _frameworks(module)
        else:
            for other in _closure(tree, module):
                for fault in _frameworks(other):
                    yield f"{module.path} must be pure, but reaches {fault}"


def network_clients(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if module.path.startswith(CLIENT_PLACES):
            continue
        for found in module.imports:
            if any(within(found.target, client) for client in CLIENTS):
                yield module.at(found.line, f"{found.target} belongs in {CLIENT_PLACES[0]}")


def tools_behind_the_gate(tree: Tree) -> Iterator[str]:
    """A tool runs by ``invoke`` alone, where the policy is: nobody calls one by itself."""
    for module in tree.modules:
        if module.package == "tools":
            continue
        own = f"{module.package}.tools"
        for found in module.imports:
            is_tool = re.fullmatch(r"(\w+\.tools|tools\.builtin)(\.\w+)?", found.target)
            if is_tool and not within(module.name, own):
                yield module.at(found.line, f"{found.target}: call tools by invoke")
        for node in module.walk():
            if isinstance(node, ast.Attribute) and node.attr == "implementation":
                yield module.at(node.lineno, "a tool's implementation is for invoke alone")


def _level(name: str) -> int | None:
    return next((level for prefix, level in LEVELS.items() if within(name, prefix)), None)


def _frameworks(module: Module) -> Iterator[str]:
    for found in module.imports:
        if SETTINGS_READERS.get(module.path) == found.target:
            continue
        if any(within(found.target, name) for name in FRAMEWORKS):
            yield module.at(found.line, f"{found.target} is not for levels 0 to 2")


def _closure(tree: Tree, start: Module) -> list[Module]:
    """``start`` and every module of ours that importing it brings in."""
    reached, ahead = {start.name: start}, [start]
    while ahead:
        for found in ahead.pop().imports:
            other = tree.find(found.target)
            if other is not None and other.name not in reached:
                reached[other.name] = other
                ahead.append(other)
    return list(reached.values())
