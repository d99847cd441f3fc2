"""Templates: what they name exists, and they hold no code that the browser is told to refuse."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.tree import Tree

TEMPLATE_TAG = re.compile(r"""\{%-?\s*(?:include|extends)\s+["']([^"']+)["']""")
TEMPLATE_NAME = re.compile(r"[\w./-]+\.html(#[\w-]+)?")
STATIC_TAG = re.compile(r"""\{%-?\s*static\s+["']([^"']+)["']""")
INLINE_CODE = re.compile(
    r"""\s(?:style|on[a-z]+)\s*=\s*["'{]|<style\b|<script\b(?![^>]*\b(?:src|nonce)=)|javascript:""",
    re.I,
)
#: Folders that packages bring along.
FOREIGN_TEMPLATES = ("admin/",)
FOREIGN_STATIC = ("admin/", "django_htmx/", "drf_spectacular_sidecar/")


def template_references(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for node in module.walk():
            match node:
                case ast.Constant(value=str(text)) if TEMPLATE_NAME.fullmatch(text) and not _exists(
                    tree, text
                ):
                    yield module.at(node.lineno, f"there is no template {text}")
    for name, text in _texts(tree):
        for reference in TEMPLATE_TAG.findall(text):
            if not _exists(tree, reference):
                yield f"{name}: there is no template {reference}"


def static_references(tree: Tree) -> Iterator[str]:
    for name, text in _texts(tree):
        for reference in STATIC_TAG.findall(text):
            is_foreign = reference.startswith(FOREIGN_STATIC)
            if not is_foreign and not (tree.root / "static" / reference).is_file():
                yield f"{name}: there is no static file {reference}"


def inline_code(tree: Tree) -> Iterator[str]:
    """The content security policy refuses inline scripts, styles and handlers."""
    for name, text in _texts(tree):
        for found in INLINE_CODE.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{name}:{line}: {found.group().strip()} is refused by the browser"


def _texts(tree: Tree) -> Iterator[tuple[str, str]]:
    for name, file in tree.templates.items():
        if file.suffix == ".html":
            yield name, file.read_text()


def _exists(tree: Tree, reference: str) -> bool:
    name = reference.split("#")[0]
    return name in tree.templates or name.startswith(FOREIGN_TEMPLATES)
