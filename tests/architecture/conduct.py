"""What only one place may do: catch everything, write events, set a status, read settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.tree import Module, Tree, dotted

#: The outermost edges, where whatever is raised must end: the calls of tools, the delivery of
#: streams, the executor of runs.
EDGES = {
    "tools/invocation.py",
    "web/handler.py",
    "chat/runs/executor.py",
}
BROAD = {"Exception", "BaseException"}

ENVIRONMENT_READERS = {"config/env.py", "bootstrap.py", "manage.py"}
ENTRY_POINTS = {"config/asgi.py"}
#: The hop of the middleware chain into a thread.
THREAD_HOPS = {"web/handler.py"}

EVENT_WRITER = "chat/runs/event_log.py"
STATUS_WRITER = "chat/runs/lifecycle.py"
ROWS = {"chat/models.py"}
WRITES = {
    "create",
    "bulk_create",
    "get_or_create",
    "update_or_create",
    "update",
    "bulk_update",
    "delete",
}
WRITES_EVENTS = re.compile(r"\b(INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+\"?chat_runevent\b", re.I)
WRITES_STATUS = re.compile(r"\bUPDATE\s+\"?chat_run\"?\s.*?\bSET\b.*?\bstatus\"?\s*=", re.I | re.S)

ASYNC_ORM = {
    "aget",
    "asave",
    "acreate",
    "aupdate",
    "adelete",
    "acount",
    "aexists",
    "afirst",
    "alast",
    "aearliest",
    "alatest",
    "aaggregate",
    "aiterator",
    "acontains",
    "ain_bulk",
    "aget_or_create",
    "aupdate_or_create",
    "abulk_create",
    "abulk_update",
    "arefresh_from_db",
}
ASYNC_BRIDGES = {"sync_to_async", "database_sync_to_async"}

#: Settings that models must know while they load.
EARLY = {"AUTH_USER_MODEL"}


def broad_excepts(tree: Tree) -> Iterator[str]:
    """Who raises again what it caught only cleans up, and may catch everything."""
    for module in tree.modules:
        if module.path in EDGES:
            continue
        for node in module.walk():
            match node:
                case ast.ExceptHandler(body=[*_, ast.Raise(exc=None)]):
                    continue
                case ast.ExceptHandler(type=None):
                    yield module.at(node.lineno, "a bare except")
                case ast.ExceptHandler(type=ast.expr() as caught) if _names(caught) & BROAD:
                    yield module.at(node.lineno, "except Exception belongs to the outermost edges")
                case ast.Call(func=function, args=arguments) if dotted(function).split(".")[
                    -1
                ] == "suppress" and any(_names(argument) & BROAD for argument in arguments):
                    yield module.at(node.lineno, "suppress(Exception) hides faults")


def event_writers(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if module.path in {EVENT_WRITER, *ROWS} or module.is_migration:
            continue
        for node in module.walk():
            match node:
                case ast.Call(func=function) if _writes_events(dotted(function)):
                    yield module.at(node.lineno, f"only {EVENT_WRITER} writes events")
                case ast.Constant(value=str(text)) if WRITES_EVENTS.search(text):
                    yield module.at(node.lineno, f"only {EVENT_WRITER} writes events")


def status_writers(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if module.path in {STATUS_WRITER, *ROWS} or module.is_migration:
            continue
        for node in module.walk():
            if _sets_status(node):
                line = getattr(node, "lineno", 1)
                yield module.at(line, f"only {STATUS_WRITER} makes runs and sets their status")


def async_orm(tree: Tree) -> Iterator[str]:
    for module in tree.modules + tree.tests:
        for node in module.walk():
            match node:
                case ast.Call(func=ast.Attribute(attr=name)) if name in ASYNC_ORM:
                    yield module.at(node.lineno, f".{name}() is async ORM: use unit_of_work")
                case ast.AsyncFor(iter=source) if ".objects" in dotted(source):
                    yield module.at(node.lineno, "iterating rows is async ORM: use unit_of_work")
        yield from _bridges(module)


def inputs(tree: Tree) -> Iterator[str]:
    """What a client sent is read where what is unknown is refused: ``web.views``."""
    for module in tree.modules:
        if "/api/" not in module.path:
            continue
        for node in module.walk():
            if isinstance(node, ast.Attribute) and (
                node.attr in {"query_params", "initial_data"}
                or (node.attr == "data" and dotted(node.value).endswith("request"))
            ):
                yield module.at(node.lineno, "reads what was sent past web.views")


def environment(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if module.path in ENVIRONMENT_READERS:
            continue
        for node in module.walk():
            match node:
                case ast.Attribute() if dotted(node) in {"os.environ", "os.environb", "os.getenv"}:
                    if not (module.path in ENTRY_POINTS and _names_settings(module, node)):
                        yield module.at(node.lineno, "config/env.py reads the environment")
        for found in module.imports:
            if found.target in {"os.environ", "os.getenv"} or found.target.startswith("environ"):
                yield module.at(found.line, "config/env.py reads the environment")


def settings_at_import(tree: Tree) -> Iterator[str]:
    """A setting that is read while a module loads cannot be overridden by a test."""
    for module in tree.modules:
        if module.package == "config" or module.is_migration:
            continue
        if not any(found.target == "django.conf.settings" for found in module.imports):
            continue
        for node in _at_import(module.ast):
            match node:
                case ast.Attribute(value=ast.Name(id="settings"), attr=name) if name not in EARLY:
                    yield module.at(node.lineno, f"settings.{name} is read at import time")


def _names(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def _writes_events(called: str) -> bool:
    parts = called.split(".")
    if parts[-1] == "RunEvent":
        return True
    rows = "RunEvent.objects" in called or "events" in parts[:-1]
    return rows and bool(WRITES & set(parts))


def _sets_status(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=targets):
            return any(_is_run_status(target) for target in targets)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return _is_run_status(target)
        case ast.Call(func=function, keywords=keywords):
            called = dotted(function)
            if called == "Run" or called.endswith((".Run", "Run.objects.create")):
                return True
            if called.split(".")[-1] not in WRITES:
                return False
            is_rows = "Run.objects" in called or "runs" in called.split(".")
            return any(
                keyword.arg == "status" and (is_rows or "RunStatus" in _names(keyword.value))
                for keyword in keywords
            )
        case ast.Constant(value=str(text)):
            return bool(WRITES_STATUS.search(text))
        case _:
            return False


def _is_run_status(target: ast.AST) -> bool:
    return bool(re.search(r"(^|[._])run\.status$", dotted(target)))


def _bridges(module: Module) -> Iterator[str]:
    if module.path in THREAD_HOPS:
        return
    for found in module.imports:
        if found.target.rpartition(".")[2] in ASYNC_BRIDGES:
            yield module.at(found.line, f"{found.target}: use unit_of_work")


def _names_settings(module: Module, environ: ast.AST) -> bool:
    """Whether ``environ`` stands in ``os.environ.setdefault("DJANGO_SETTINGS_MODULE", …)``."""
    for node in module.walk():
        match node:
            case ast.Call(
                func=ast.Attribute(value=value, attr="setdefault"),
                args=[ast.Constant(value="DJANGO_SETTINGS_MODULE"), *_],
            ) if value is environ:
                return True
    return False


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Everything that is evaluated while the module loads: not the bodies of functions."""
    for child in ast.iter_child_nodes(node):
        match child:
            case (
                ast.FunctionDef(args=arguments, decorator_list=decorators)
                | ast.AsyncFunctionDef(args=arguments, decorator_list=decorators)
            ):
                for part in [
                    *arguments.defaults,
                    *filter(None, arguments.kw_defaults),
                    *decorators,
                ]:
                    yield from ast.walk(part)
            case ast.Lambda():
                continue
            case _:
                yield child
                yield from _at_import(child)
