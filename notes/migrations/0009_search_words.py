"""Words are all that PostgreSQL's parser gets to see, and phrases are found word for word.

The parser takes what stands between ``<`` and ``>`` for a tag, drops it, and needs time that is
quadratic in some runs of signs. So signs become blanks before it, one for one, in what is indexed
and in what is typed: an address is the words that it is made of, side by side.

Positions are kept of all words, those that a language leaves out, too: by copies of PostgreSQL's
configurations, ``notes_english`` and so on, whose dictionaries know no stop words. A position is
kept of 255 occurrences of a word in an entry. Where one occurs more often, the entry holds a lexeme
``=p:`` of it with each of its neighbours, and ``=m``.

Entries that are there already stay as they are until they are filled again: they are pending.
"""

from importlib import import_module

from django.db import migrations

search = import_module("notes.migrations.0002_search")
search_parts = import_module("notes.migrations.0005_search_parts")

#: Characters that nobody sees: soft hyphens, places to break a line, directions, ways to draw a sign.
INVISIBLE = "".join(
    map(chr, [0xAD, 0x180E, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2060])
) + "".join(map(chr, [*range(0x2066, 0x206A), *range(0xFE00, 0xFE10), 0xFEFF]))
#: Joiners say something in other scripts.
JOINERS = "\u200c\u200d"
LATIN = r"A-Za-z\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff"
SIGNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
#: Signs, blanks and emoji beyond ASCII, all of which the parser takes for letters.
MORE_SIGNS = (
    r"\u0080-\u00a9\u00ab-\u00ac\u00ae-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7"
    r"\u02c2-\u02c5\u02d2-\u02df\u02e5-\u02eb\u02ed\u02ef-\u02ff\u0375\u037e\u0384-\u0385"
    r"\u0387\u03f6\u0482\u055a-\u055f\u0589-\u058f\u05be\u05c0\u05c3\u05c6\u05f3-\u060f"
    r"\u061b-\u061f\u066a-\u066d\u06d4\u06dd-\u06de\u06e9\u06fd-\u06fe\u0700-\u070f"
    r"\u07f6-\u07f9\u07fe-\u07ff\u0830-\u083e\u085e\u0888\u0890-\u0891\u08e2\u0964-\u0965"
    r"\u0970\u09f2-\u09f3\u09fa-\u09fb\u09fd\u0a76\u0af0-\u0af1\u0b70\u0bf3-\u0bfa\u0c77\u0c7f"
    r"\u0c84\u0d4f\u0d79\u0df4\u0e3f\u0e4f\u0e5a-\u0e5b\u0f01-\u0f17\u0f1a-\u0f1f\u0f34\u0f36"
    r"\u0f38\u0f3a-\u0f3d\u0f85\u0fbe-\u0fc5\u0fc7-\u0fda\u104a-\u104f\u109e-\u109f\u10fb"
    r"\u1360-\u1368\u1390-\u1399\u1400\u166d-\u166e\u1680\u169b-\u169c\u16eb-\u16ed"
    r"\u1735-\u1736\u17d4-\u17d6\u17d8-\u17db\u1800-\u180a\u1940-\u1945\u19de-\u19ff"
    r"\u1a1e-\u1a1f\u1aa0-\u1aa6\u1aa8-\u1aad\u1b5a-\u1b6a\u1b74-\u1b7e\u1bfc-\u1bff"
    r"\u1c3b-\u1c3f\u1c7e-\u1c7f\u1cc0-\u1cc7\u1cd3\u1fbd\u1fbf-\u1fc1\u1fcd-\u1fcf"
    r"\u1fdd-\u1fdf\u1fed-\u1fef\u1ffd-\u200a\u2010-\u2029\u202f-\u205f\u2061-\u2064"
    r"\u206a-\u206f\u207a-\u207e\u208a-\u208e\u20a0-\u20c0\u20dd-\u20e0\u20e2-\u20e4"
    r"\u2100-\u2101\u2103-\u2106\u2108-\u2109\u2114\u2116-\u2118\u211e-\u2123\u2125\u2127"
    r"\u2129\u212e\u213a-\u213b\u2140-\u2144\u214a-\u214d\u214f\u218a-\u244a\u249c-\u24e9"
    r"\u2500-\u2775\u2794-\u2bff\u2ce5-\u2cea\u2cf9-\u2cfc\u2cfe-\u2cff\u2d70\u2e00-\u2e2e"
    r"\u2e30-\u3004\u3008-\u3020\u3030\u3036-\u3037\u303d-\u303f\u3190-\u3191\u3196-\u319f"
    r"\u31c0-\u31e3\u3200-\u321e\u322a-\u3247\u3250\u3260-\u327f\u328a-\u32b0\u32c0-\u33ff"
    r"\u4dc0-\u4dff\ua490-\ua4c6\ua4fe-\ua4ff\ua60d-\ua60f\ua673\ua67e\ua6f2-\ua716"
    r"\ua720-\ua721\ua789-\ua78a\ua828-\ua82b\ua836-\ua839\ua874-\ua877\ua8ce-\ua8cf"
    r"\ua8f8-\ua8fa\ua8fc\ua92e-\ua92f\ua95f\ua9c1-\ua9cd\ua9de-\ua9df\uaa5c-\uaa5f"
    r"\uaa77-\uaa79\uaade-\uaadf\uaaf0-\uaaf1\uab5b\uab6a-\uab6b\uabeb\ufb29\ufbb2-\ufbc2"
    r"\ufd3e-\ufd4f\ufdcf\ufdfc-\ufdff\ufe10-\ufe19\ufe30-\ufe6b\uff01-\uff0f\uff1a-\uff20"
    r"\uff3b-\uff40\uff5b-\uff65\uffe0-\ufffd\U00010100-\U00010102\U00010137-\U0001013f"
    r"\U00010179-\U00010189\U0001018c-\U000101fc\U0001039f\U000103d0\U0001056f\U00010857"
    r"\U00010877-\U00010878\U0001091f\U0001093f\U00010a50-\U00010a58\U00010a7f\U00010ac8"
    r"\U00010af0-\U00010af6\U00010b39-\U00010b3f\U00010b99-\U00010b9c\U00010ead"
    r"\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047-\U0001104d\U000110bb-\U000110c1"
    r"\U000110cd\U00011140-\U00011143\U00011174-\U00011175\U000111c5-\U000111c8\U000111cd"
    r"\U000111db\U000111dd-\U000111df\U00011238-\U0001123d\U000112a9\U0001144b-\U0001144f"
    r"\U0001145a-\U0001145d\U000114c6\U000115c1-\U000115d7\U00011641-\U00011643"
    r"\U00011660-\U0001166c\U000116b9\U0001173c-\U0001173f\U0001183b\U00011944-\U00011946"
    r"\U000119e2\U00011a3f-\U00011a46\U00011a9a-\U00011a9c\U00011a9e-\U00011aa2"
    r"\U00011c41-\U00011c45\U00011c70-\U00011c71\U00011ef7-\U00011ef8\U00011fd5-\U00011fff"
    r"\U00012470-\U00012474\U00012ff1-\U00012ff2\U00013430-\U00013438\U00016a6e-\U00016a6f"
    r"\U00016af5\U00016b37-\U00016b3f\U00016b44-\U00016b45\U00016e97-\U00016e9a\U00016fe2"
    r"\U0001bc9c\U0001bc9f-\U0001bca3\U0001cf50-\U0001d164\U0001d16a-\U0001d16c"
    r"\U0001d173-\U0001d17a\U0001d183-\U0001d184\U0001d18c-\U0001d1a9\U0001d1ae-\U0001d241"
    r"\U0001d245\U0001d300-\U0001d356\U0001d6c1\U0001d6db\U0001d6fb\U0001d715\U0001d735"
    r"\U0001d74f\U0001d76f\U0001d789\U0001d7a9\U0001d7c3\U0001d800-\U0001d9ff"
    r"\U0001da37-\U0001da3a\U0001da6d-\U0001da74\U0001da76-\U0001da83\U0001da85-\U0001da8b"
    r"\U0001e14f\U0001e2ff\U0001e95e-\U0001e95f\U0001ecac\U0001ecb0\U0001ed2e"
    r"\U0001eef0-\U0001eef1\U0001f000-\U0001f0f5\U0001f10d-\U0001f265\U0001f300-\U0001f8b1"
    r"\U0001f900-\U0001fbca\U000e0001-\U000e007f"
)
#: Where an identifier consists of parts.
PARTED = "[[:lower:][:digit:]][[:upper:]]|[[:upper:]]{2}[[:lower:]]|[[:alpha:]][[:digit:]]"

CONFIGURATIONS = r"""
DO $$
DECLARE
  config record;
  dictionary record;
BEGIN
  FOR config IN SELECT c.oid, c.cfgname AS name FROM pg_ts_config AS c
    WHERE c.cfgnamespace = 'pg_catalog'::regnamespace AND c.cfgname <> 'simple'
  LOOP
    EXECUTE format('CREATE TEXT SEARCH CONFIGURATION notes_%s (COPY = pg_catalog.%I)',
      config.name, config.name);
    FOR dictionary IN SELECT DISTINCT d.dictname AS name,
        regexp_replace(d.dictinitoption, ',?\s*stopwords\s*=\s*''[^'']*''', '', 'i') AS options
      FROM pg_ts_config_map AS m
      JOIN pg_ts_dict AS d ON d.oid = m.mapdict
      JOIN pg_ts_template AS t ON t.oid = d.dicttemplate
      WHERE m.mapcfg = config.oid AND t.tmplname = 'snowball'
    LOOP
      IF NOT EXISTS (SELECT FROM pg_ts_dict AS d WHERE d.dictname = 'notes_' || dictionary.name)
      THEN
        EXECUTE format('CREATE TEXT SEARCH DICTIONARY notes_%s (TEMPLATE = pg_catalog.snowball, %s)',
          dictionary.name, dictionary.options);
      END IF;
      EXECUTE format(
        'ALTER TEXT SEARCH CONFIGURATION notes_%s ALTER MAPPING REPLACE pg_catalog.%I WITH notes_%s',
        config.name, dictionary.name, dictionary.name);
    END LOOP;
  END LOOP;
END $$;
"""

FUNCTIONS = r"""
-- The configuration of a language that leaves no word out.
CREATE FUNCTION notes_search_full(language text) RETURNS regconfig
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $$
BEGIN
  RETURN coalesce(
    (SELECT c.oid FROM pg_ts_config AS c
     WHERE c.cfgname = 'notes_' || language AND pg_ts_config_is_visible(c.oid)),
    language::regconfig);
END $$;

-- Without the characters that nobody sees.
CREATE FUNCTION notes_search_visible(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN t ~ '[@I@@J@]' THEN
  regexp_replace(translate(t, '@I@', ''), '([@L@])[@J@]+', '\1', 'g') ELSE t END;

-- Without accents, in one form for all writings of a character.
CREATE FUNCTION notes_search_plain(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN
  translate(replace(replace(replace(
    normalize(regexp_replace(normalize(
      CASE WHEN t ~ '[@M@]{5}' THEN regexp_replace(t, '([@M@]{4})[@M@]+', '\1', 'g') ELSE t END,
      NFKD), '(?<![иИ])\u0306|[\u0300-\u0305\u0307-\u036f]', '', 'g'), NFC),
    'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'ẞøØłŁđĐÆŒı', 'SoOlLdDAOi');

CREATE OR REPLACE FUNCTION notes_search_fold(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN octet_length(t) = char_length(t) THEN t
  ELSE notes_search_plain(notes_search_visible(t)) END;

-- A folded text as nothing but words: without signs, and without what is indexed in pairs.
CREATE FUNCTION notes_search_words(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN octet_length(t) = char_length(t) THEN translate(t, '@SIGNS@', '@BLANKS@')
  ELSE regexp_replace(translate(t, '@SIGNS@', '@BLANKS@'), '[@C@@S@]+', ' ', 'g') END;

-- The parts of identifiers with blanks between them.
CREATE FUNCTION notes_search_split(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN regexp_replace(t,
  '([[:lower:][:digit:]])([[:upper:]])|([[:upper:]])([[:upper:]][[:lower:]])|([[:alpha:]])([[:digit:]])',
  '\1\3\5 \2\4\6', 'g');

-- What is made of parts, taken apart, with what stands beside it.
CREATE OR REPLACE FUNCTION notes_search_parts(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN t ~ '@PARTED@' THEN
  (SELECT string_agg(notes_search_split(m[1]), ' ')
   FROM regexp_matches(t, '([[:alnum:]_./@:\\-]*(?:@PARTED@)[[:alnum:]_./@:\\-]*)', 'g') AS m)
END;

-- Words as a vector: stems with positions (rank, phrases), and the exact words without (a stem is
-- no prefix of what is being typed, and another language has other stems).
CREATE FUNCTION notes_search_lexemes(config regconfig, words text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_tsvector(config, words) || strip(to_tsvector('simple', words));

CREATE OR REPLACE FUNCTION notes_search_vector(config regconfig, t text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN notes_search_lexemes(config, notes_search_words(t))
  || coalesce(to_tsvector(config, notes_search_words(notes_search_parts(t))), '')
  || coalesce(to_tsvector('simple', notes_search_pairs(t)), '');

-- Of words that occur more often than PostgreSQL keeps positions of: each with its neighbours.
CREATE FUNCTION notes_search_neighbours(config regconfig, words text, vector tsvector)
RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  crowded text[] := ARRAY(SELECT v.lexeme FROM unnest(vector) AS v
                          WHERE cardinality(v.positions) >= 255);
BEGIN
  IF crowded = '{}' THEN
    RETURN '';
  END IF;
  RETURN (
    WITH word AS MATERIALIZED (
      SELECT w.word, w.place
      FROM regexp_split_to_table(lower(left(words, 200000)), '[^[:alnum:]@M@]+') WITH ORDINALITY AS w (word, place)
      WHERE w.word <> ''
    ), often AS MATERIALIZED (
      SELECT d.word FROM (SELECT DISTINCT word FROM word) AS d
      WHERE tsvector_to_array(to_tsvector(config, d.word)) && crowded
    ), pair AS (
      SELECT word AS first, lead(word) OVER (ORDER BY place) AS second FROM word
    )
    SELECT array_to_tsvector(array_agg(DISTINCT '=p:' || first || ' ' || second) || '=m'::text)
    FROM pair WHERE char_length(first) + char_length(second) < 500
      AND (first IN (SELECT word FROM often) OR second IN (SELECT word FROM often)));
END $$;

-- What a note says beside its content.
CREATE OR REPLACE FUNCTION notes_search_head(note notes_note, language text) RETURNS tsvector
LANGUAGE plpgsql STABLE AS $$
DECLARE
  config regconfig := notes_search_full(language);
  head tsvector := notes_search_owned(note.owner_id, language) || array_to_tsvector(
      ARRAY['=d:' || md5(note.folder)]
      || ARRAY(SELECT DISTINCT '=t:' || left(tag, 300) FROM unnest(note.tags_folded[:64]) AS tag)
      || ARRAY(SELECT '=f:' || md5('/' || array_to_string(names[:depth], '/') || '/')
               FROM string_to_array(trim(BOTH '/' FROM note.folder), '/') AS names,
                    generate_series(1, least(cardinality(names), 64)) AS depth))
    || setweight(notes_search_vector(config, notes_search_fold(left(note.title, 1000))), 'A');
BEGIN
  IF note.tags <> '{}' THEN
    head := head || setweight(notes_search_vector(config,
      notes_search_fold(left(array_to_string(note.tags[:64], ' '), 6400))), 'C');
  END IF;
  RETURN head;
END $$;

-- A piece of a content.
CREATE OR REPLACE FUNCTION notes_search_body(piece text, language text) RETURNS tsvector
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS $$
DECLARE
  config regconfig := notes_search_full(language);
  folded text := notes_search_fold(piece);
  body tsvector := setweight(notes_search_vector(config, folded), 'B');
BEGIN
  -- So many words of one character have no room in less.
  IF char_length(folded) > 500 THEN
    body := body || notes_search_neighbours(config, notes_search_words(folded), body);
  END IF;
  RETURN body;
END $$;

CREATE OR REPLACE FUNCTION notes_search_parts_write(
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
      AND regexp_count(piece, '[[:alnum:]]+') > 16000 LOOP
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

-- What terms of a query mean in languages: folded, the exact words, and in each language the stems
-- and the parts of an identifier. Words without white space between them are a phrase, too. A
-- function, as planning this takes longer than running it.
CREATE OR REPLACE FUNCTION notes_search_lexize(
  terms text[], phrases boolean[], languages text[])
RETURNS TABLE (place bigint, folded text, exact text, language text, stems text, parts text)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT term.place, f.folded, e.exact::text, l.language,
    CASE WHEN term.phrase OR numnode(e.exact) > 1
      THEN phraseto_tsquery(notes_search_full(l.language), w.words)
      ELSE plainto_tsquery(l.language::regconfig, w.words) END::text,
    CASE WHEN NOT term.phrase AND f.folded ~ '@PARTED@' THEN
      plainto_tsquery(l.language::regconfig, notes_search_words(notes_search_split(f.folded)))
      END::text
  FROM unnest(terms, phrases) WITH ORDINALITY AS term (typed, phrase, place)
  CROSS JOIN LATERAL (SELECT notes_search_fold(term.typed) AS folded OFFSET 0) AS f
  CROSS JOIN LATERAL (SELECT notes_search_words(f.folded) AS words OFFSET 0) AS w
  CROSS JOIN LATERAL (SELECT plainto_tsquery('simple', w.words) AS exact OFFSET 0) AS e
  CROSS JOIN unnest(languages) AS l (language)
  ORDER BY term.place;
END $$;

-- Go on with a note that has a pending entry; whether there was something to do. One that stands
-- for the note itself has it written anew.
CREATE OR REPLACE FUNCTION notes_search_go_on(id uuid, number integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  note notes_note;
  entry notes_notesearchentry;
BEGIN
  SELECT * INTO note FROM notes_note AS n WHERE n.id = notes_search_go_on.id FOR NO KEY UPDATE;
  IF EXISTS (SELECT FROM notes_notesearchentry AS e
    WHERE e.note_id = notes_search_go_on.id AND e.pending AND (e.whole OR e.start = 0)) THEN
    DELETE FROM notes_notesearchentry AS e WHERE e.note_id = notes_search_go_on.id;
    PERFORM notes_search_write(ARRAY[note.id]);
    RETURN true;
  END IF;
  DELETE FROM notes_notesearchentry AS e WHERE e.note_id = notes_search_go_on.id AND e.pending
  RETURNING * INTO entry;
  IF entry.start IS NULL OR note.id IS NULL THEN
    RETURN false;
  END IF;
  PERFORM notes_search_parts_write(note, entry.language, entry.start, number);
  RETURN true;
END $$;
"""

ANEW = "UPDATE notes_notesearchentry SET pending = true WHERE whole OR start = 0"

DROP = r"""
DROP FUNCTION notes_search_neighbours(regconfig, text, tsvector);
DROP FUNCTION notes_search_lexemes(regconfig, text);
DROP FUNCTION notes_search_split(text);
DROP FUNCTION notes_search_words(text);
DROP FUNCTION notes_search_plain(text);
DROP FUNCTION notes_search_visible(text);
DROP FUNCTION notes_search_full(text);
DO $$
DECLARE
  named record;
BEGIN
  FOR named IN SELECT c.cfgname AS name FROM pg_ts_config AS c WHERE c.cfgname LIKE 'notes\_%' LOOP
    EXECUTE format('DROP TEXT SEARCH CONFIGURATION %I', named.name);
  END LOOP;
  FOR named IN SELECT d.dictname AS name FROM pg_ts_dict AS d WHERE d.dictname LIKE 'notes\_%' LOOP
    EXECUTE format('DROP TEXT SEARCH DICTIONARY %I', named.name);
  END LOOP;
END $$;
"""
#: Those of before that stand in for the functions of here.
BEFORE = ("fold", "parts", "vector", "lexize", "head", "body", "parts_write", "go_on")


def install(apps, schema_editor):
    sql = CONFIGURATIONS + FUNCTIONS
    for name, value in {
        "@M@": search.MARKS,
        "@C@": search.CJK,
        "@I@": INVISIBLE,
        "@J@": JOINERS,
        "@S@": MORE_SIGNS,
        "@L@": LATIN,
        "@PARTED@": PARTED,
        "@SIGNS@": SIGNS.replace("'", "''"),
        "@BLANKS@": " " * len(SIGNS),
    }.items():
        sql = sql.replace(name, value)
    schema_editor.execute(sql, params=None)
    schema_editor.execute(ANEW)


def remove(apps, schema_editor):
    known = {}
    for sql in (search.FUNCTIONS, search.LEXIZE, search_parts.ENTRIES):
        for text in sql.split("CREATE ")[1:]:
            text = text.removeprefix("OR REPLACE ").split("\n\n")[0]
            if text.startswith("FUNCTION notes_search_"):
                known[text.split("notes_search_")[1].split("(")[0]] = text
    sql = "DROP FUNCTION notes_search_body(text, text);\n" + "\n".join(
        f"CREATE OR REPLACE {known[name]};" for name in BEFORE
    )
    sql = sql.replace("@M@", search.MARKS).replace("@C@", search.CJK)
    schema_editor.execute(sql + DROP, params=None)
    schema_editor.execute(
        "ALTER FUNCTION notes_search_lexize(text[], boolean[], text[])"
        " SET plan_cache_mode = force_generic_plan"
    )


class Migration(migrations.Migration):
    dependencies = [("notes", "0008_search_pause")]

    operations = [migrations.RunPython(install, remove)]
