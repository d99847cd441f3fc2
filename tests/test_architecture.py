"""The rules of the house hold, and each refuses a sample that breaks it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.urls import get_resolver

from tests.architecture import conduct, imports, pages, shape
from tests.architecture.tree import PACKAGES, SCRIPTS, Tree

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"

Rule = Callable[[Tree], Iterator[str]]
RULES: tuple[Rule, ...] = (
    imports.package_imports,
    imports.doubles_stay_in_tests,
    imports.chat_levels,
    imports.pure_levels,
    imports.network_clients,
    imports.tools_behind_the_gate,
    shape.function_sizes,
    shape.module_sizes,
    shape.module_docstrings,
    shape.forbidden_names,
    shape.keyword_only_services,
    shape.test_packages,
    conduct.broad_excepts,
    conduct.event_writers,
    conduct.status_writers,
    conduct.async_orm,
    conduct.environment,
    conduct.inputs,
    conduct.settings_at_import,
    pages.template_references,
    pages.static_references,
    pages.inline_code,
)


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(ROOT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_house_keeps_the_rule(tree, rule):
    assert list(rule(tree)) == []


def test_tree_holds_every_package(tree):
    found = {module.package for module in tree.modules}
    assert found >= set(PACKAGES) - {"projects"}
    folders = {file.parent.name for file in ROOT.glob("*/__init__.py")}
    assert folders <= {*PACKAGES, "tests"}


LONG = "def work():\n" + "    pass\n" * 80
WITHIN = "def work():\n" + "    pass\n" * 79

REFUSED: list[tuple[Rule, str, str]] = [
    (imports.package_imports, "tools/a.py", "from notes.models import Note"),
    (imports.package_imports, "tools/a.py", "import web.errors"),
    (imports.package_imports, "web/a.py", "def f():\n    from tools import registry"),
    (imports.package_imports, "web/a.py", "async def f():\n    import accounts"),
    (imports.package_imports, "accounts/a.py", "from notes import services"),
    (imports.package_imports, "notes/a.py", "from chat.models import Run"),
    (imports.package_imports, "notes/a.py", "from accounts.models import User"),
    (
        imports.package_imports,
        "notes/a.py",
        "from importlib import import_module\nimport_module('chat.runs')",
    ),
    (imports.package_imports, "chat/api/a.py", "from config import settings"),
    (imports.package_imports, "chat/api/a.py", "from tests.notes import rules"),
    (imports.package_imports, "config/a.py", "from chat.runs.runtime import Runtime"),
    (imports.package_imports, "config/a.py", "import notes"),
    (imports.package_imports, "notes/api/a.py", "from ...chat import models"),
    (imports.doubles_stay_in_tests, "chat/runs/a.py", "from chat.testing import ScriptedProvider"),
    (imports.doubles_stay_in_tests, "chat/runs/a.py", "from chat import testing"),
    (imports.chat_levels, "chat/types.py", "from chat.providers import base"),
    (imports.chat_levels, "chat/providers/a.py", "from chat.loop.planning import next_step"),
    (imports.chat_levels, "chat/loop/a.py", "from chat import models"),
    (imports.chat_levels, "chat/runs/a.py", "def f():\n    from chat.wire import sse"),
    (imports.chat_levels, "chat/runs/a.py", "from ..api import urls"),
    (imports.chat_levels, "chat/api/a.py", "from chat.providers.catalogue import resolve"),
    (imports.chat_levels, "chat/management/commands/a.py", "from chat.providers import base"),
    (imports.chat_levels, "chat/other.py", "x = 1"),
    (imports.pure_levels, "chat/loop/a.py", "from django.db import models"),
    (imports.pure_levels, "chat/types.py", "def f():\n    import psycopg"),
    (imports.pure_levels, "chat/providers/a.py", "from django.conf import settings"),
    (imports.pure_levels, "chat/providers/catalogue.py", "from django.db import connection"),
    (imports.network_clients, "chat/providers/openai.py", "import httpx"),
    (imports.network_clients, "notes/a.py", "from aiohttp import ClientSession"),
    (imports.network_clients, "tools/a.py", "from urllib import request"),
    (imports.network_clients, "chat/runs/a.py", "def f():\n    from httpx_aiohttp import x"),
    (imports.tools_behind_the_gate, "chat/runs/a.py", "from notes.tools import note_create"),
    (imports.tools_behind_the_gate, "chat/runs/a.py", "from notes import tools"),
    (imports.tools_behind_the_gate, "chat/api/a.py", "from tools.builtin import current_time"),
    (imports.tools_behind_the_gate, "chat/api/a.py", "registry.get('a').implementation(context)"),
    (shape.function_sizes, "notes/a.py", LONG),
    (shape.function_sizes, "notes/a.py", LONG.replace("def", "async def")),
    (shape.function_sizes, "tests/notes/test_a.py", LONG),
    (shape.module_sizes, "notes/a.py", "x = 1\n" * 501),
    (shape.module_docstrings, "notes/a.py", "x = 1\n" * 16),
    (shape.forbidden_names, "notes/utils.py", ""),
    (shape.forbidden_names, "chat/helpers.py", ""),
    (shape.forbidden_names, "accounts/signals.py", ""),
    (shape.forbidden_names, "web/common/a.py", ""),
    (shape.forbidden_names, "tests/helpers.py", ""),
    (shape.keyword_only_services, "notes/services.py", "def note_create(owner): ..."),
    (shape.keyword_only_services, "notes/selectors.py", "def note_get(owner, *, note_id): ..."),
    (shape.keyword_only_services, "notes/services.py", "def note_create(*values, owner): ..."),
    (shape.test_packages, "tests/notes/test_a.py", ""),
    (conduct.broad_excepts, "notes/a.py", "try:\n    f()\nexcept Exception:\n    pass"),
    (
        conduct.broad_excepts,
        "notes/a.py",
        "try:\n    f()\nexcept (KeyError, BaseException):\n    g()",
    ),
    (conduct.broad_excepts, "notes/a.py", "try:\n    f()\nexcept:\n    g()"),
    (conduct.broad_excepts, "notes/a.py", "with contextlib.suppress(Exception):\n    f()"),
    (conduct.event_writers, "chat/runs/a.py", "RunEvent(run=run)"),
    (conduct.event_writers, "chat/runs/a.py", "models.RunEvent.objects.bulk_create(rows)"),
    (conduct.event_writers, "chat/api/a.py", "RunEvent.objects.filter(run=run).delete()"),
    (conduct.event_writers, "chat/api/a.py", "run.events.create(seq=1)"),
    (conduct.event_writers, "chat/runs/a.py", "SQL = 'insert into chat_runevent (run) values (1)'"),
    (conduct.status_writers, "chat/runs/a.py", "run.status = 'finished'"),
    (conduct.status_writers, "chat/runs/a.py", "self.run.status = 'finished'"),
    (conduct.status_writers, "chat/api/a.py", "Run.objects.filter(id=1).update(status='x')"),
    (conduct.status_writers, "chat/api/a.py", "conversation.runs.update(status='x')"),
    (conduct.status_writers, "chat/api/a.py", "Run.objects.create(owner=owner)"),
    (conduct.status_writers, "chat/api/a.py", "rows.update(status=RunStatus.FINISHED)"),
    (
        conduct.status_writers,
        "chat/runs/a.py",
        "SQL = 'UPDATE chat_run SET attempt = 1, status = %s'",
    ),
    (conduct.async_orm, "chat/runs/a.py", "async def f():\n    await Run.objects.aget(id=1)"),
    (conduct.async_orm, "chat/runs/a.py", "async def f():\n    await run.asave()"),
    (conduct.async_orm, "tests/test_a.py", "async def f():\n    await Run.objects.acount()"),
    (
        conduct.async_orm,
        "chat/runs/a.py",
        "async def f():\n    async for r in Run.objects.all(): ...",
    ),
    (conduct.async_orm, "notes/a.py", "from asgiref.sync import sync_to_async"),
    (conduct.environment, "notes/a.py", "import os\nX = os.environ['X']"),
    (conduct.environment, "config/settings.py", "import os\nX = os.getenv('X')"),
    (conduct.environment, "config/asgi.py", "import os\nX = os.environ.get('X')"),
    (conduct.environment, "chat/runs/a.py", "from os import environ"),
    (conduct.environment, "chat/runs/a.py", "import environ\nenv = environ.Env()"),
    (conduct.inputs, "notes/api/a.py", "def f(request): return request.data"),
    (conduct.inputs, "chat/api/a.py", "def f(self): return self.request.query_params"),
    (
        conduct.settings_at_import,
        "chat/a.py",
        "from django.conf import settings\nX = settings.DEBUG",
    ),
    (
        conduct.settings_at_import,
        "chat/a.py",
        "from django.conf import settings\ndef f(x=settings.X): ...",
    ),
    (
        conduct.settings_at_import,
        "chat/a.py",
        "from django.conf import settings\nclass A:\n    x = settings.X",
    ),
    (pages.template_references, "notes/pages/views.py", "T = 'notes/missing.html'"),
    (pages.template_references, "templates/notes/a.html", "{% include 'notes/missing.html' %}"),
    (pages.template_references, "templates/notes/a.html", '{% extends "missing.html" %}'),
    (pages.static_references, "templates/a.html", "{% static 'js/missing.js' %}"),
    (pages.inline_code, "templates/a.html", '<p style="color: red">'),
    (pages.inline_code, "templates/a.html", '<button onclick="go()">'),
    (pages.inline_code, "templates/a.html", "<script>go()</script>"),
    (pages.inline_code, "templates/a.html", "<style>p {}</style>"),
    (pages.inline_code, "templates/a.html", '<a href="javascript:go()">'),
]

TAKEN: list[tuple[Rule, str, str]] = [
    (
        imports.package_imports,
        "chat/runs/a.py",
        "from notes import selectors\nimport tools.registry",
    ),
    (imports.package_imports, "notes/a.py", "from .models import Note\nimport toolz"),
    (imports.package_imports, "config/a.py", "import_string('chat.runs.runtime.Runtime')"),
    (
        imports.chat_levels,
        "chat/runs/a.py",
        "from chat.loop import planning\nfrom chat import types",
    ),
    (
        imports.chat_levels,
        "chat/api/a.py",
        "from chat.runs import lifecycle\nfrom chat.wire import sse",
    ),
    (imports.pure_levels, "chat/loop/a.py", "from tools.definitions import ToolSpec"),
    (imports.pure_levels, "chat/providers/catalogue.py", "from django.conf import settings"),
    (imports.network_clients, "chat/providers/http.py", "import httpx, httpx_aiohttp"),
    (imports.network_clients, "tools/outbound/client.py", "import httpx"),
    (imports.tools_behind_the_gate, "chat/runs/a.py", "from tools.invocation import invoke"),
    (shape.function_sizes, "notes/a.py", WITHIN),
    (shape.module_sizes, "notes/a.py", "x = 1\n" * 500),
    (shape.module_docstrings, "notes/a.py", "x = 1\n" * 15),
    (
        shape.keyword_only_services,
        "notes/services.py",
        "def note_create(*, owner): ...\ndef digest(x): ...",
    ),
    (conduct.broad_excepts, "tools/invocation.py", "try:\n    f()\nexcept Exception:\n    raise"),
    (conduct.broad_excepts, "notes/a.py", "try:\n    f()\nexcept ValueError:\n    pass"),
    (
        conduct.broad_excepts,
        "notes/a.py",
        "try:\n    f()\nexcept BaseException:\n    g()\n    raise",
    ),
    (conduct.event_writers, "chat/runs/event_log.py", "RunEvent.objects.create()"),
    (conduct.event_writers, "chat/runs/a.py", "RunEvent.objects.filter(run=run).last()"),
    (conduct.event_writers, "chat/runs/a.py", "SQL = 'SELECT * FROM chat_runevent'"),
    (conduct.status_writers, "chat/runs/lifecycle.py", "run.status = 'finished'"),
    (conduct.status_writers, "chat/runs/a.py", "call.status = 'done'\nx = run.status"),
    (conduct.status_writers, "chat/runs/a.py", "ToolCall.objects.filter(run=1).update(status='x')"),
    (conduct.status_writers, "chat/runs/a.py", "Run.objects.filter(status='queued').count()"),
    (conduct.inputs, "notes/api/a.py", "def f(self): return Shape(note).data | self.sent()"),
    (conduct.environment, "config/env.py", "import environ, os\nX = os.environ['X']"),
    (
        conduct.environment,
        "config/asgi.py",
        "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'config.settings')",
    ),
    (
        conduct.settings_at_import,
        "notes/models.py",
        "from django.conf import settings\nclass A:\n    owner = f(settings.AUTH_USER_MODEL)\n"
        "    def g(self): return settings.X",
    ),
    (pages.template_references, "notes/pages/views.py", "T = 'admin/base_site.html'"),
    (pages.static_references, "templates/a.html", "{% static 'django_htmx/htmx.min.js' %}"),
    (pages.inline_code, "templates/a.html", '<script type="module" src="a.js"></script>'),
    (pages.inline_code, "templates/a.html", "<script nonce={{ n }}></script><p data-on=x>"),
]


def plant(root: Path, path: str, source: str) -> Tree:
    file = root / path
    file.parent.mkdir(parents=True)
    file.write_text(source)
    return Tree(root)


@pytest.mark.parametrize(("rule", "path", "source"), REFUSED)
def test_rule_refuses_the_sample(tmp_path, rule, path, source):
    faults = list(rule(plant(tmp_path, path, source)))
    assert len(faults) == 1
    assert Path(path).name in faults[0]


@pytest.mark.parametrize(("rule", "path", "source"), TAKEN)
def test_rule_takes_the_sample(tmp_path, rule, path, source):
    assert list(rule(plant(tmp_path, path, source))) == []


def test_templates_name_pages_that_exist(tree):
    resolver = get_resolver()
    known = {name for name in resolver.reverse_dict if isinstance(name, str)}
    for namespace, (_, inner) in resolver.namespace_dict.items():
        known |= {f"{namespace}:{name}" for name in inner.reverse_dict}
    for file in tree.templates.values():
        for name in re.findall(r"{%-?\s*url\s+['\"]([\w:.-]+)['\"]", file.read_text()):
            assert name in known, f"{file.name}: there is no page {name}"


def test_pure_levels_refuse_what_is_reached_through_others(tmp_path):
    plant(tmp_path, "tools/definitions.py", "from tools.deep import x")
    (tmp_path / "tools/deep.py").write_text("from django.db import models")
    tree = plant(tmp_path, "chat/loop/a.py", "from tools.definitions import ToolSpec")
    (fault,) = imports.pure_levels(tree)
    assert fault.startswith("chat/loop/a.py must be pure, but reaches tools/deep.py:1")


def test_every_rule_has_a_sample_that_it_refuses():
    assert {rule for rule, *_ in REFUSED} == set(RULES)


def test_samples_are_python_or_templates():
    for _, path, source in REFUSED + TAKEN:
        if path.endswith(".py"):
            ast.parse(source)


def rows(heading: str) -> dict[str, list[str]]:
    """The first table under ``heading`` of docs/architecture.md, by its first column."""
    text = PAGE.read_text().split(f"## {heading}\n", 1)[1]
    lines = itertools.takewhile(
        lambda line: line.startswith("|"), text[text.index("\n|") + 1 :].splitlines()
    )
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first.strip("`"): rest for first, *rest in cells[2:]}


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([\w./]+)`", cell))


def test_page_says_what_every_package_owns(tree):
    assert set(rows("Packages")) == {module.package for module in tree.modules} - {
        Path(script).stem for script in SCRIPTS
    }


def test_page_says_what_every_folder_owns(tree):
    usual = {"api", "pages", "management", "commands", "migrations"}
    folders = {Path(module.path).parent for module in tree.modules}
    found = re.findall(r"^\| `([a-z_]+/[a-z_/]+)` \|", PAGE.read_text(), re.M)
    assert set(found) == {
        folder.as_posix()
        for folder in folders
        if len(folder.parts) > 1 and folder.name not in usual
    }


def test_page_tells_the_import_table(tree):
    found = {package: names(cells[0]) for package, cells in rows("Who may import whom").items()}
    assert found == {package: set(imports.MAY_IMPORT[package] & set(found)) for package in found}
    assert set(found) == set(rows("Packages"))


def test_page_tells_the_levels_of_chat():
    found = {
        name: int(level.split()[0])
        for level, cells in rows("The levels of chat").items()
        for name in names(cells[0])
    }
    assert found == imports.LEVELS


def test_page_tells_the_outermost_edges():
    (place,) = rows("What only one place does")["catch every exception"]
    assert names(place) == conduct.EDGES


def test_page_names_places_that_exist_or_are_reserved():
    for cells in rows("What only one place does").values():
        for place in names(cells[0]) - {"tools/outbound/"}:
            assert (ROOT / place).exists() or place.startswith("chat/runs/")
