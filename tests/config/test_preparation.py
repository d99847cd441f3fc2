"""Schema and static files are prepared once; what dump writes, restore reads or refuses."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from config import preparation
from config.database_files import DatabaseFileError, database_restore


def test_schema_is_current_after_the_migrations(db):
    assert preparation.schema_is_current()
    assert not preparation.schema_migrate()


def test_schema_is_not_current_when_a_migration_is_missing(db):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'notes'")
    assert not preparation.schema_is_current()


@pytest.fixture
def static_root(settings, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "page.css").write_text("a {}")
    settings.STATIC_ROOT = tmp_path / "collected"
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    return source


def test_static_files_are_collected_when_they_differ(static_root, settings):
    assert preparation.static_collect()
    assert (settings.STATIC_ROOT / "page.css").read_text() == "a {}"
    assert not preparation.static_collect()
    (static_root / "page.css").write_text("a { color: red }")
    assert preparation.static_collect()
    assert (settings.STATIC_ROOT / "page.css").read_text() == "a { color: red }"


def test_dump_holds_schema_and_rows(transactional_db, tmp_path, django_user_model):
    django_user_model.objects.create_user("grace")
    path = tmp_path / "notewire.sql"
    call_command("dump", path, verbosity=0)
    written = path.read_text()
    assert "CREATE TABLE public.accounts_user" in written
    assert "grace" in written
    assert path.stat().st_mode & 0o777 == 0o600


def test_restore_refuses_a_database_with_tables(db, tmp_path):
    (tmp_path / "notewire.sql").write_text("SELECT 1;")
    with pytest.raises(CommandError, match="not empty"):
        call_command("restore", tmp_path / "notewire.sql")


def test_restore_refuses_what_is_no_file(db, tmp_path):
    with pytest.raises(DatabaseFileError, match="is not a file"):
        database_restore(tmp_path / "missing.sql")


def test_restore_is_all_or_nothing(transactional_db, tmp_path, monkeypatch):
    path = tmp_path / "broken.sql"
    path.write_text("CREATE TABLE restored (id int); SELECT nonsense;")
    monkeypatch.setattr(connection.introspection, "table_names", list)
    with pytest.raises(DatabaseFileError, match="nonsense"):
        database_restore(path)
    monkeypatch.undo()
    assert "restored" not in connection.introspection.table_names()
