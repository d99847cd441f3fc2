"""Search entries of longer notes: one of the note's own words, others of its content alone.

The entry at 0 holds title, tags and folder, so that a change of those leaves the entries of the
content as they are, however many they are. A note of few characters stays in one entry at 1.
"""

from importlib import import_module

from django.conf import settings
from django.db import migrations

ENTRIES = r"""
DROP FUNCTION notes_search_write(notes_note, integer, integer);

-- The language a note is indexed in: its own, its owner's, or what its words look like.
CREATE FUNCTION notes_search_language(note notes_note) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
  language text := note.language;
BEGIN
  IF language = '' THEN
    SELECT u.language INTO language FROM @USERS@ AS u WHERE u.id = note.owner_id;
  END IF;
  IF coalesce(language, '') = '' THEN
    RETURN notes_search_guess(
      notes_search_fold(left(note.title, 200) || ' ' || left(note.content, 1000)));
  END IF;
  IF NOT EXISTS (SELECT FROM pg_ts_config AS c WHERE c.cfgname = language) THEN
    RETURN 'simple';
  END IF;
  RETURN language;
END $$;

-- What all entries of a note say.
CREATE FUNCTION notes_search_owned(owner_id bigint, language text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN array_to_tsvector(ARRAY['=o:' || owner_id, '=l:' || language]);

-- What a note says beside its content.
CREATE FUNCTION notes_search_head(note notes_note, language text) RETURNS tsvector
LANGUAGE plpgsql STABLE AS $$
DECLARE
  config regconfig := language;
  head tsvector := notes_search_owned(note.owner_id, language) || array_to_tsvector(
      ARRAY['=d:' || md5(note.folder)]
      || ARRAY(SELECT DISTINCT '=t:' || left(tag, 300) FROM unnest(note.tags_folded[:64]) AS tag)
      || ARRAY(SELECT '=f:' || md5('/' || array_to_string(names[:depth], '/') || '/')
               FROM string_to_array(trim(BOTH '/' FROM note.folder), '/') AS names,
                    generate_series(1, least(cardinality(names), 64)) AS depth))
    || setweight(notes_search_vector(config, notes_search_fold(left(note.title, 1000))), 'A');
BEGIN
  IF note.tags <> '{}' THEN
    head := head || setweight(to_tsvector(config,
      notes_search_fold(left(array_to_string(note.tags[:64], ' '), 6400))), 'C');
  END IF;
  RETURN head;
END $$;

-- A piece of a content.
CREATE FUNCTION notes_search_body(piece text, language text) RETURNS tsvector
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN setweight(notes_search_vector(language::regconfig, notes_search_fold(piece)), 'B');

-- Write the entries of the content from the character `first` on, `number` of them at most. What is
-- left is one pending entry: a long text is not indexed while its writer waits.
CREATE FUNCTION notes_search_parts_write(
  note notes_note, language text, first integer, number integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  length integer := char_length(note.content);
  size integer := 100000;
  vector tsvector;
  piece text;
BEGIN
  LOOP
    -- PostgreSQL counts no positions beyond 16,383, and a phrase needs them.
    piece := substr(note.content, first, size);
    WHILE number > 0 AND size > 20000 AND char_length(piece) > 32000
      AND regexp_count(piece, '\s+') > 16000 LOOP
      size := size * 2 / 3;
      piece := left(piece, size);
    END LOOP;
    vector := notes_search_owned(note.owner_id, language);
    IF number > 0 THEN
      BEGIN
        vector := vector || notes_search_body(piece, language);
      EXCEPTION WHEN program_limit_exceeded THEN
        -- PostgreSQL holds no more than 1 MiB of different words in a vector.
        size := size / 2;
        CONTINUE;
      END;
    END IF;
    INSERT INTO notes_notesearchentry
      (note_id, start, owner_id, updated, language, whole, pending, tsv)
    VALUES
      (note.id, first, note.owner_id, note.updated, language, false, number = 0, vector);
    EXIT WHEN number = 0 OR first + size > length;
    -- Words and phrases that the cut goes through are whole in the next entry.
    first := first + size - 200;
    size := 100000;
    number := number - 1;
  END LOOP;
END $$;

-- Write the entries of notes that have none: a short note in one, of a longer one the first.
CREATE FUNCTION notes_search_write(ids uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  note notes_note;
  tongue text;
BEGIN
  INSERT INTO notes_notesearchentry
    (note_id, start, owner_id, updated, language, whole, pending, tsv)
  SELECT n.id, 1, n.owner_id, n.updated, l.language, true, false,
    notes_search_head(n, l.language) || notes_search_body(n.content, l.language)
  FROM notes_note AS n
  CROSS JOIN LATERAL (SELECT notes_search_language(n) AS language OFFSET 0) AS l
  WHERE n.id = ANY (ids) AND n.deleted IS NULL AND char_length(n.content) <= @SHORT@;
  FOR note IN SELECT * FROM notes_note AS n
    WHERE n.id = ANY (ids) AND n.deleted IS NULL AND char_length(n.content) > @SHORT@
  LOOP
    tongue := notes_search_language(note);
    INSERT INTO notes_notesearchentry
      (note_id, start, owner_id, updated, language, whole, pending, tsv)
    VALUES
      (note.id, 0, note.owner_id, note.updated, tongue, false, false,
       notes_search_head(note, tongue));
    PERFORM notes_search_parts_write(note, tongue, 1, 2);
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION notes_search_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  tongue text;
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.id = OLD.id AND NEW.owner_id = OLD.owner_id
    AND NEW.deleted IS NULL AND OLD.deleted IS NULL AND NEW.content = OLD.content THEN
    tongue := notes_search_language(NEW);
    UPDATE notes_notesearchentry AS e
    SET updated = NEW.updated, tsv = notes_search_head(NEW, tongue)
    WHERE e.note_id = NEW.id AND e.start = 0 AND e.language = tongue;
    IF FOUND THEN
      RETURN NULL;
    END IF;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM notes_notesearchentry WHERE note_id = OLD.id;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.deleted IS NULL THEN
    PERFORM notes_search_write(ARRAY[NEW.id]);
  END IF;
  RETURN NULL;
END $$;

-- Go on with a note that has a pending entry; whether there was something to do.
CREATE OR REPLACE FUNCTION notes_search_go_on(id uuid, number integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  note notes_note;
  entry notes_notesearchentry;
BEGIN
  SELECT * INTO note FROM notes_note AS n WHERE n.id = notes_search_go_on.id FOR NO KEY UPDATE;
  DELETE FROM notes_notesearchentry AS e WHERE e.note_id = notes_search_go_on.id AND e.pending
  RETURNING * INTO entry;
  IF entry.start IS NULL OR note.id IS NULL THEN
    RETURN false;
  END IF;
  PERFORM notes_search_parts_write(note, entry.language, entry.start, number);
  RETURN true;
END $$;
"""

#: What is in several entries so far has no entry of its own words.
ANEW = """
WITH emptied AS (
  DELETE FROM notes_notesearchentry WHERE NOT whole RETURNING note_id
)
SELECT array_agg(DISTINCT note_id) FROM emptied
"""

DROP = """
DROP FUNCTION notes_search_write(uuid[]);
DROP FUNCTION notes_search_parts_write(notes_note, text, integer, integer);
DROP FUNCTION notes_search_body(text, text);
DROP FUNCTION notes_search_head(notes_note, text);
DROP FUNCTION notes_search_owned(bigint, text);
DROP FUNCTION notes_search_language(notes_note);
"""

#: Characters of a content that stays in one entry with title, tags and folder.
SHORT = 20_000


def install(apps, schema_editor):
    _execute(apps, schema_editor, ENTRIES)
    _write_anew(schema_editor, "SELECT notes_search_write(%s)")


def remove(apps, schema_editor):
    before = import_module("notes.migrations.0002_search").ENTRIES
    trigger = before.index("CREATE TRIGGER"), before.index("-- Go on with")
    without_trigger = before[: trigger[0]] + before[trigger[1] :]
    _execute(
        apps,
        schema_editor,
        DROP + without_trigger.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"),
    )
    _write_anew(
        schema_editor, "SELECT notes_search_write(n, 1, 2) FROM notes_note AS n WHERE id = ANY(%s)"
    )


def _execute(apps, schema_editor, sql):
    users = apps.get_model(settings.AUTH_USER_MODEL)._meta.db_table
    sql = sql.replace("@USERS@", schema_editor.quote_name(users)).replace("@SHORT@", str(SHORT))
    schema_editor.execute(sql, params=None)


def _write_anew(schema_editor, write):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(ANEW)
        ids = cursor.fetchone()[0]
        if ids:
            cursor.execute(write, [ids])


class Migration(migrations.Migration):
    dependencies = [
        ("notes", "0004_transfer"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [migrations.RunPython(install, remove)]
