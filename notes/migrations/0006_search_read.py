"""Functions for what every search asks first: planning it takes longer than running it.

PostgreSQL keeps the plans of what a function does, and of nothing that is sent as text.
"""

from django.db import migrations

FUNCTIONS = r"""
-- For the rest of this transaction, a statement may take so long, or less where that held before.
-- What held before.
CREATE FUNCTION notes_time_limit(milliseconds integer) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  before text := current_setting('statement_timeout');
BEGIN
  PERFORM set_config('statement_timeout', least(milliseconds,
    nullif(extract(epoch FROM before::interval) * 1000, 0))::integer::text, true);
  RETURN before;
END $$;

-- What a search has to know before it looks: whether the owner has more entries than `few`, whether
-- some notes have more than one, the languages of them, and what the terms mean in these, or in
-- `tongue`. The transaction sorts in memory and compiles nothing from here on.
CREATE FUNCTION notes_search_read(
  owner bigint, few integer, terms text[], phrases boolean[], tongue text,
  OUT has_many boolean, OUT has_long boolean, OUT languages text[], OUT lexized json)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  PERFORM set_config('work_mem', '64MB', true), set_config('jit', 'off', true);
  has_many := EXISTS (
    SELECT FROM notes_notesearchentry AS e WHERE e.owner_id = owner OFFSET few);
  has_long := EXISTS (
    SELECT FROM notes_notesearchentry AS e WHERE e.owner_id = owner AND NOT e.whole);
  languages := ARRAY(
    WITH RECURSIVE spoken AS (
      (SELECT e.language FROM notes_notesearchentry AS e
       WHERE e.owner_id = owner ORDER BY e.language LIMIT 1)
      UNION ALL
      SELECT (SELECT e.language FROM notes_notesearchentry AS e
              WHERE e.owner_id = owner AND e.language > s.language ORDER BY e.language LIMIT 1)
      FROM spoken AS s WHERE s.language IS NOT NULL
    )
    SELECT s.language FROM spoken AS s WHERE s.language IS NOT NULL);
  lexized := (SELECT json_agg(json_build_array(
      l.place, l.folded, l.exact, l.language, l.stems, l.parts))
    FROM notes_search_lexize(
      terms, phrases, CASE tongue WHEN '' THEN languages ELSE ARRAY[tongue] END) AS l);
END $$;

-- What is shown of the notes of a page, each from the character `start` of its content on. `exact`
-- is null, or what has to match for a note to be found by its words rather than by beginnings.
CREATE FUNCTION notes_search_show(
  owner bigint, ids uuid[], starts integer[], size integer, exact tsquery)
RETURNS TABLE (id uuid, title text, folder text, tags text[], updated timestamptz,
  by_words boolean, content text)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT n.id, n.title::text, n.folder::text, n.tags::text[], n.updated,
    exact IS NULL OR (
      SELECT coalesce(own.tsv, '') || e.tsv @@ exact FROM notes_notesearchentry AS e
      LEFT JOIN notes_notesearchentry AS own ON own.note_id = e.note_id AND own.start = 0
      WHERE e.note_id = n.id AND e.start = place.start),
    substr(n.content, greatest(1, place.start), size)
  FROM unnest(ids, starts) AS place (note_id, start)
  JOIN notes_note AS n ON n.id = place.note_id
  WHERE n.owner_id = owner AND n.deleted IS NULL;
END $$;

-- The folders and tags that most of these notes have, each with their number.
CREATE FUNCTION notes_search_facets(ids uuid[], most integer) RETURNS json
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (
    WITH hit AS MATERIALIZED (
      SELECT n.folder, n.tags, n.tags_folded
      FROM unnest(ids) AS found (id) JOIN notes_note AS n ON n.id = found.id
    )
    SELECT json_build_object(
      'folders', (SELECT json_agg(json_build_array(f.folder, f.number)) FROM (
        SELECT folder, count(*) AS number FROM hit
        GROUP BY folder ORDER BY count(*) DESC, folder LIMIT most) AS f),
      'tags', (SELECT json_agg(json_build_array(t.tag, t.number)) FROM (
        SELECT min(tag) AS tag, count(*) AS number
        FROM hit, unnest(tags, tags_folded) AS t (tag, folded)
        GROUP BY folded ORDER BY count(*) DESC, folded LIMIT most) AS t)));
END $$;

-- One plan for all terms: PostgreSQL would make a new one for each array of them.
ALTER FUNCTION notes_search_lexize(text[], boolean[], text[])
  SET plan_cache_mode = force_generic_plan;
"""
DROP = """
ALTER FUNCTION notes_search_lexize(text[], boolean[], text[]) RESET plan_cache_mode;
DROP FUNCTION notes_search_facets(uuid[], integer);
DROP FUNCTION notes_search_show(bigint, uuid[], integer[], integer, tsquery);
DROP FUNCTION notes_search_read(bigint, integer, text[], boolean[], text);
DROP FUNCTION notes_time_limit(integer);
"""


class Migration(migrations.Migration):
    dependencies = [("notes", "0005_search_parts")]

    operations = [migrations.RunSQL(FUNCTIONS, DROP)]
