"""Keep `NoteSearchEntry` in step with notes, whoever writes them.

Title weighs A, content B. PostgreSQL refuses a vector of more than 1 MiB of words ("string is too
long for tsvector"): the first 250,000 characters of a content are indexed, or the longest half of
a half of them that fits, so that no text makes a save fail.
"""

from django.db import migrations

CREATE = """
CREATE FUNCTION notes_search_vector(title text, content text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    length integer := 250000;
BEGIN
    LOOP
        BEGIN
            RETURN setweight(to_tsvector('pg_catalog.english', title), 'A')
                || setweight(to_tsvector('pg_catalog.english', left(content, length)), 'B');
        EXCEPTION WHEN program_limit_exceeded THEN
            length := length / 2;
        END;
    END LOOP;
END $$;

CREATE FUNCTION notes_search_entry_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO notes_notesearchentry (note_id, vector)
    VALUES (NEW.id, notes_search_vector(NEW.title, NEW.content))
    ON CONFLICT (note_id) DO UPDATE SET vector = EXCLUDED.vector;
    RETURN NULL;
END $$;

CREATE TRIGGER notes_search_entry_write AFTER INSERT OR UPDATE OF title, content ON notes_note
FOR EACH ROW EXECUTE FUNCTION notes_search_entry_write();
"""

DROP = """
DROP TRIGGER notes_search_entry_write ON notes_note;
DROP FUNCTION notes_search_entry_write();
DROP FUNCTION notes_search_vector(text, text);
"""


class Migration(migrations.Migration):
    dependencies = [("notes", "0001_initial")]

    operations = [migrations.RunSQL(CREATE, DROP)]
