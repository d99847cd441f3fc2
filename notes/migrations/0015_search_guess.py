"""The alphabet tells a language only where there are letters of it: not emoji, quotes or arrows.

Entries of notes that were taken for Russian for want of any letters are pending.
"""

from importlib import import_module

from django.db import migrations

search = import_module("notes.migrations.0002_search")

BEFORE = """    ORDER BY regexp_count(head, a.letters) DESC LIMIT 1;
    RETURN guess;
"""
AFTER = """    WHERE 6 * regexp_count(head, a.letters) > regexp_count(head, '[[:alpha:]]')
    ORDER BY regexp_count(head, a.letters) DESC LIMIT 1;
    IF guess IS NOT NULL THEN
      RETURN guess;
    END IF;
"""

ANEW = """
UPDATE notes_notesearchentry AS e SET pending = true
FROM notes_note AS n
WHERE e.language = 'russian' AND (e.whole OR e.start = 0)
  AND n.id = e.note_id AND notes_search_language(n) <> e.language
"""


def guess():
    """The function as it was."""
    alphabets = ", ".join(
        f"('{name}', '[{letters}]')" for name, letters in search.ALPHABETS.items()
    )
    words = ", ".join(
        f"('{word}', '{language}', {place})"
        for place, (language, text) in enumerate(search.COMMON_WORDS.items())
        for word in text.split()
    )
    sql = search.LANGUAGE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    return sql.replace("@ALPHABETS@", alphabets).replace("@WORDS@", words)


def install(apps, schema_editor):
    schema_editor.execute(guess().replace(BEFORE, AFTER), params=None)
    schema_editor.execute(ANEW)


def remove(apps, schema_editor):
    schema_editor.execute(guess(), params=None)


class Migration(migrations.Migration):
    dependencies = [("notes", "0014_search_long_words")]

    operations = [migrations.RunPython(install, remove)]
