"""No word reaches PostgreSQL's parser that it could not hold, and more writings are one.

A lexeme has at most 2,046 bytes. The parser measures a word before its letters are made small and
stemmed: of letters that take more bytes then, a longer word ends the server's process, with all
sessions. So words of more than 254 characters are blanks in what is indexed and in what is typed,
and the two letters that grow are folded, as others with a stroke are.

Hebrew points, Arabic vowel signs and letters that stand for an apostrophe do not matter any more.
Entries of notes that have some are pending.
"""

from importlib import import_module

from django.db import migrations

search = import_module("notes.migrations.0002_search")
search_words = import_module("notes.migrations.0009_search_words")
search_signs = import_module("notes.migrations.0011_search_signs")

POINTS = r"\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u064b-\u0652\u0670"
LETTERS, PLAIN_LETTERS = "ȺⱥȾⱦʻʼ", "AaTt''''"

PLAIN = rf"""
-- Without accents, in one form for all writings of a character.
CREATE OR REPLACE FUNCTION notes_search_plain(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN
  translate(replace(replace(replace(
    normalize(regexp_replace(normalize(
      CASE WHEN t ~ '[@M@]{{5}}' THEN regexp_replace(t, '([@M@]{{4}})[@M@]+', '\1', 'g') ELSE t END,
      NFKD), '(?<![иИ])\u0306|[\u0300-\u0305\u0307-\u036f{POINTS}]', '', 'g'), NFC),
    'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'ẞøØłŁđĐÆŒı{LETTERS}', 'SoOlLdDAOi{PLAIN_LETTERS}');
"""

WORDS = rf"""
-- A folded text as nothing but words: without signs, without what is indexed in pairs, and without
-- what is too long for a word.
CREATE OR REPLACE FUNCTION notes_search_words(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN regexp_replace(
  CASE WHEN octet_length(t) = char_length(t)
    THEN regexp_replace(t, '[{search_signs.SIGNS}]+', ' ', 'g')
    ELSE regexp_replace(
      t, '[{search_signs.SIGNS}@C@@S@{search_signs.PRIVATE}]+', ' ', 'g') END,
  '\S{{255}}\S*', ' ', 'g');
"""

ANEW = rf"""
UPDATE notes_notesearchentry SET pending = true
WHERE (whole OR start = 0) AND note_id IN (
  SELECT id FROM notes_note AS n
  WHERE n.title || ' ' || array_to_string(n.tags, ' ') || ' ' || n.content
    ~ '[{LETTERS}{POINTS}]');
"""  # noqa: S608


def install(apps, schema_editor):
    sql = PLAIN + WORDS
    for name, value in {
        "@M@": search.MARKS,
        "@C@": search.CJK,
        "@S@": search_words.MORE_SIGNS,
    }.items():
        sql = sql.replace(name, value)
    schema_editor.execute(sql, params=None)
    schema_editor.execute(ANEW, params=None)


def remove(apps, schema_editor):
    start = search_words.FUNCTIONS.index("CREATE FUNCTION notes_search_plain(")
    plain = search_words.FUNCTIONS[start : search_words.FUNCTIONS.index(";", start) + 1]
    plain = plain.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    sql = plain.replace("@M@", search.MARKS) + search_signs.WORDS
    schema_editor.execute(sql, params=None)


class Migration(migrations.Migration):
    dependencies = [("notes", "0013_transfer_trusted")]

    operations = [migrations.RunPython(install, remove)]
