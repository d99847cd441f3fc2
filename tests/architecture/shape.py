"""Sizes, names, docstrings and signatures."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.tree import Tree

FUNCTION_LINES = 80
MODULE_LINES = 500
UNEXPLAINED_LINES = 15
FORBIDDEN_NAMES = {"utils", "helpers", "signals", "common", "core"}
KEYWORD_ONLY = {"services.py", "selectors.py", "lifecycle.py"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def function_sizes(tree: Tree) -> Iterator[str]:
    for module in tree.modules + tree.tests:
        for node in module.walk():
            if isinstance(node, Function):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    yield module.at(node.lineno, f"{node.name} has {lines} lines")


def module_sizes(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        lines = len(module.source.splitlines())
        if lines > MODULE_LINES and not module.is_migration:
            yield module.at(1, f"the module has {lines} lines")


def module_docstrings(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        lines = len(module.source.splitlines())
        if (
            lines > UNEXPLAINED_LINES
            and not module.is_migration
            and not ast.get_docstring(module.ast)
        ):
            yield module.at(1, "the module does not say what it owns")


def forbidden_names(tree: Tree) -> Iterator[str]:
    for module in tree.modules + tree.tests:
        for part in module.name.split("."):
            if part in FORBIDDEN_NAMES:
                yield module.at(1, f"{part} says nothing about an owner")


def keyword_only_services(tree: Tree) -> Iterator[str]:
    """What reads or writes for an owner; a function over values may take them as it likes."""
    for module in tree.modules:
        if module.path.rsplit("/", 1)[-1] not in KEYWORD_ONLY:
            continue
        for node in module.ast.body:
            if isinstance(node, Function) and not node.name.startswith("_"):
                positional = [*node.args.posonlyargs, *node.args.args, node.args.vararg]
                names = {argument.arg for argument in positional + node.args.kwonlyargs if argument}
                if "owner" in names and any(positional):
                    yield module.at(node.lineno, f"{node.name} takes positional arguments")


def test_packages(tree: Tree) -> Iterator[str]:
    for module in tree.tests:
        folder = (tree.root / module.path).parent
        if not (folder / "__init__.py").exists():
            yield module.at(1, f"{folder.name} has no __init__.py")
