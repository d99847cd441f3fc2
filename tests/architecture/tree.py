"""A source tree, parsed once: its modules, what they import, its templates."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGES = ("config", "web", "tools", "accounts", "notes", "projects", "chat")
SCRIPTS = ("manage.py", "bootstrap.py")
IMPORTERS = {"import_module", "import_string", "__import__"}


@dataclass(frozen=True)
class Import:
    line: int
    target: str
    by_string: bool = False


class Module:
    """One file: ``path`` is relative to the tree, ``name`` is dotted."""

    def __init__(self, root: Path, file: Path) -> None:
        self.path = file.relative_to(root).as_posix()
        self.name = self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        self.source = file.read_text()
        self.ast = ast.parse(self.source)

    @property
    def package(self) -> str:
        return self.name.split(".")[0]

    @property
    def is_migration(self) -> bool:
        return "/migrations/" in self.path

    def at(self, line: int, words: str) -> str:
        return f"{self.path}:{line}: {words}"

    def walk(self) -> Iterator[ast.AST]:
        return ast.walk(self.ast)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """All of them, those inside functions too; ``from a import b`` is ``a.b``."""
        return tuple(found for node in self.walk() for found in self._imports_of(node))

    def _imports_of(self, node: ast.AST) -> Iterator[Import]:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(node.lineno, alias.name)
            case ast.ImportFrom(names=names):
                base = self._base(node)
                for alias in names:
                    yield Import(node.lineno, f"{base}.{alias.name}".removesuffix(".*"))
            case ast.Call(func=function, args=[ast.Constant(value=str(target)), *_]):
                name = function.attr if isinstance(function, ast.Attribute) else ""
                name = function.id if isinstance(function, ast.Name) else name
                if name in IMPORTERS:
                    yield Import(node.lineno, target, by_string=True)

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        is_package = self.path.endswith("__init__.py")
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + is_package]
        return ".".join([*parts, node.module] if node.module else parts)


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        files = [root / name for name in SCRIPTS if (root / name).exists()]
        for package in PACKAGES:
            files += sorted((root / package).rglob("*.py"))
        self.modules = tuple(Module(root, file) for file in files)
        self.tests = tuple(Module(root, file) for file in sorted((root / "tests").rglob("*.py")))

    @cached_property
    def by_name(self) -> dict[str, Module]:
        return {module.name: module for module in self.modules}

    def find(self, target: str) -> Module | None:
        """The module of ours that ``target`` (a module or a name in one) leads to."""
        return self.by_name.get(target) or self.by_name.get(target.rpartition(".")[0])

    @cached_property
    def templates(self) -> dict[str, Path]:
        """The HTML files by the names under which they are referred to."""
        folders = [self.root / "templates", *(self.root / name / "templates" for name in PACKAGES)]
        return {
            file.relative_to(folder).as_posix(): file
            for folder in folders
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        }


def within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of an attribute chain; calls and subscripts in it are left out."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
        case ast.Call(func=value) | ast.Subscript(value=value):
            return dotted(value)
        case _:
            return ""
