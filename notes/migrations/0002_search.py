"""The search entries of notes: their functions, their trigger, and how their table is stored.

Functions are IMMUTABLE SQL without extensions, so that what is indexed and what is typed go
through the same ones. One trigger keeps entries in step with notes, whoever writes them.

Lexemes that begin with ``=`` say what an entry belongs to; the text parser never makes one, so
nobody can type it: ``=o:`` owner, ``=l:`` language, ``=t:`` tag, ``=f:`` each folder around the
note, ``=d:`` the folder it is right in.
"""

from django.conf import settings
from django.db import migrations

#: Combining marks, and letters that decompose to nothing else. Normalising takes time that is
#: quadratic in their runs, so runs are cut at four before it.
MARKS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0610-\u061a"
    r"\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    r"\u07a6-\u07b0\u07eb-\u07f3\u07fd\u0816-\u0819\u081b-\u0823\u0825-\u0827\u0829-\u082d"
    r"\u0859-\u085b\u0898-\u089f\u08ca-\u08e1\u08e3-\u0903\u093a-\u093c\u093e-\u094f"
    r"\u0951-\u0957\u0962-\u0963\u0981-\u0983\u09bc\u09be-\u09cd\u09d7\u09e2-\u09e3\u09fe-\u0a03"
    r"\u0a3c-\u0a51\u0a70-\u0a71\u0a75\u0a81-\u0a83\u0abc\u0abe-\u0acd\u0ae2-\u0ae3\u0afa-\u0b03"
    r"\u0b3c\u0b3e-\u0b57\u0b62-\u0b63\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04\u0c3c\u0c3e-\u0c56"
    r"\u0c62-\u0c63\u0c81-\u0c83\u0cbc\u0cbe-\u0cd6\u0ce2-\u0ce3\u0d00-\u0d03\u0d3b-\u0d3c"
    r"\u0d3e-\u0d4d\u0d57\u0d62-\u0d63\u0d81-\u0d83\u0dca-\u0ddf\u0df2-\u0df3\u0e31\u0e34-\u0e3a"
    r"\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f18-\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f3f"
    r"\u0f71-\u0f84\u0f86-\u0f87\u0f8d-\u0fbc\u0fc6\u102b-\u103e\u1056-\u1059\u105e-\u1060"
    r"\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u135d-\u135f"
    r"\u1712-\u1715\u1732-\u1734\u1752-\u1753\u1772-\u1773\u17b4-\u17d3\u17dd\u180b-\u180d\u180f"
    r"\u1885-\u1886\u18a9\u1920-\u193b\u1a17-\u1a1b\u1a55-\u1a7f\u1ab0-\u1b04\u1b34-\u1b44"
    r"\u1b6b-\u1b73\u1b80-\u1b82\u1ba1-\u1bad\u1be6-\u1bf3\u1c24-\u1c37\u1cd0-\u1cd2"
    r"\u1cd4-\u1ce8\u1ced\u1cf4\u1cf7-\u1cf9\u1dc0-\u1dff\u20d0-\u20f0\u2cef-\u2cf1\u2d7f"
    r"\u2de0-\u2dff\u302a-\u302f\u3099-\u309a\ua66f-\ua672\ua674-\ua67d\ua69e-\ua69f"
    r"\ua6f0-\ua6f1\ua802\ua806\ua80b\ua823-\ua827\ua82c\ua880-\ua881\ua8b4-\ua8c5\ua8e0-\ua8f1"
    r"\ua8ff\ua926-\ua92d\ua947-\ua953\ua980-\ua983\ua9b3-\ua9c0\ua9e5\uaa29-\uaa36\uaa43"
    r"\uaa4c-\uaa4d\uaa7b-\uaa7d\uaab0\uaab2-\uaab4\uaab7-\uaab8\uaabe-\uaabf\uaac1\uaaeb-\uaaef"
    r"\uaaf5-\uaaf6\uabe3-\uabea\uabec-\uabed\ufb1e\ufe00-\ufe0f\ufe20-\ufe2f\uff9e-\uff9f"
    r"\U000101fd\U000102e0\U00010376-\U0001037a\U00010a01-\U00010a0f\U00010a38-\U00010a3f"
    r"\U00010ae5-\U00010ae6\U00010d24-\U00010d27\U00010eab-\U00010eac\U00010f46-\U00010f50"
    r"\U00010f82-\U00010f85\U00011000-\U00011002\U00011038-\U00011046\U00011070"
    r"\U00011073-\U00011074\U0001107f-\U00011082\U000110b0-\U000110ba\U000110c2"
    r"\U00011100-\U00011102\U00011127-\U00011134\U00011145-\U00011146\U00011173"
    r"\U00011180-\U00011182\U000111b3-\U000111c0\U000111c9-\U000111cc\U000111ce-\U000111cf"
    r"\U0001122c-\U00011237\U0001123e\U000112df-\U000112ea\U00011300-\U00011303"
    r"\U0001133b-\U0001133c\U0001133e-\U0001134d\U00011357\U00011362-\U00011374"
    r"\U00011435-\U00011446\U0001145e\U000114b0-\U000114c3\U000115af-\U000115c0"
    r"\U000115dc-\U000115dd\U00011630-\U00011640\U000116ab-\U000116b7\U0001171d-\U0001172b"
    r"\U0001182c-\U0001183a\U00011930-\U0001193e\U00011940\U00011942-\U00011943"
    r"\U000119d1-\U000119e0\U000119e4\U00011a01-\U00011a0a\U00011a33-\U00011a39"
    r"\U00011a3b-\U00011a3e\U00011a47\U00011a51-\U00011a5b\U00011a8a-\U00011a99"
    r"\U00011c2f-\U00011c3f\U00011c92-\U00011cb6\U00011d31-\U00011d45\U00011d47"
    r"\U00011d8a-\U00011d97\U00011ef3-\U00011ef6\U00016af0-\U00016af4\U00016b30-\U00016b36"
    r"\U00016f4f\U00016f51-\U00016f92\U00016fe4-\U00016ff1\U0001bc9d-\U0001bc9e"
    r"\U0001cf00-\U0001cf46\U0001d165-\U0001d169\U0001d16d-\U0001d172\U0001d17b-\U0001d182"
    r"\U0001d185-\U0001d18b\U0001d1aa-\U0001d1ad\U0001d242-\U0001d244\U0001da00-\U0001da36"
    r"\U0001da3b-\U0001da6c\U0001da75\U0001da84\U0001da9b-\U0001daaf\U0001e000-\U0001e02a"
    r"\U0001e130-\U0001e136\U0001e2ae\U0001e2ec-\U0001e2ef\U0001e8d0-\U0001e8d6"
    r"\U0001e944-\U0001e94a\U000e0100-\U000e01ef\u0897\u0ece\U00010d69-\U00010d6d"
    r"\U00010efc-\U00010eff\U00011241\U000113b8-\U000113e2\U00011f34-\U00011f42"
    r"\U0001611e-\U0001612f\U0001e08f\U0001e4ec-\U0001e4ef\U0001e5ee-\U0001e5ef"
)
CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003fffd"

FUNCTIONS = r"""
-- Without accents, in one form for all writings of a character: what ASCII already is.
CREATE FUNCTION notes_search_fold(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN octet_length(t) = char_length(t) THEN t ELSE
  translate(replace(replace(replace(
    normalize(regexp_replace(normalize(
      CASE WHEN t ~ '[@M@]{5}' THEN regexp_replace(t, '([@M@]{4})[@M@]+', '\1', 'g') ELSE t END,
      NFKD), '(?<![иИ])\u0306|[\u0300-\u0305\u0307-\u036f]', '', 'g'), NFC),
    'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'ẞøØłŁđĐÆŒı', 'SoOlLdDAOi')
END;

-- Identifiers, paths, addresses and versions taken apart: only tokens that are made of parts.
CREATE FUNCTION notes_search_parts(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN t ~ '[[:lower:]][[:upper:]]|[[:upper:]]{2}[[:lower:]]|[[:alnum:]][._/@:\\][[:alnum:]]|[[:alpha:]][[:digit:]]' THEN
  (SELECT string_agg(regexp_replace(regexp_replace(m[1],
      '([[:lower:][:digit:]])([[:upper:]])|([[:upper:]])([[:upper:]][[:lower:]])|([[:alpha:]])([[:digit:]])',
      '\1\3\5 \2\4\6', 'g'), '[^[:alnum:]]+', ' ', 'g'), ' ')
   FROM regexp_matches(t, '([[:alnum:]_./@:\\]*(?:[[:lower:]][[:upper:]]|[[:upper:]]{2}[[:lower:]]|[[:alnum:]][._/@:\\][[:alnum:]]|[[:alpha:]][[:digit:]])[[:alnum:]_./@:\\]*)', 'g') AS m)
END;

-- Runs of Chinese, Japanese and Korean characters as overlapping pairs.
CREATE FUNCTION notes_search_pairs(t text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN octet_length(t) > char_length(t) AND t ~ '[@C@]' THEN
  (SELECT regexp_replace(c, '([^ ]{2})', '\1 ', 'g') || ' ' ||
     regexp_replace(regexp_replace(c, '(^| )([^ ])', '\1\2 ', 'g'), '([^ ]{2})', '\1 ', 'g')
   FROM regexp_replace(t, '[^@C@]+', ' ', 'g') AS c)
END;

-- A folded text as a vector: stems with positions (rank, phrases), and the exact words without
-- (a stem is no prefix of what is being typed, and another language has other stems).
CREATE FUNCTION notes_search_vector(config regconfig, t text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_tsvector(config, t) || strip(to_tsvector('simple', t))
  || coalesce(to_tsvector(config, notes_search_parts(t)), '')
  || coalesce(to_tsvector('simple', notes_search_pairs(t)), '');
"""

#: The commonest words of languages that share an alphabet, without accents.
COMMON_WORDS = {
    "english": "the and of to is in that it for was with are this you not have be on as at from",
    "german": "der die das und ist nicht ein eine zu den mit von auf fur im sich dem auch es ich",
    "french": "le la les et est des un une du que qui dans pour pas sur avec ce il au je nous",
    "spanish": "el la los las y es de que en un una por con para no se del al lo como mas su",
    "portuguese": "o os as e de que em um uma nao para com do da dos das no na por mais se eu",
    "italian": "il lo la gli e di che non un una per con del della nel sono si da al ho come",
    "dutch": "de het een en van is dat niet op te voor met zijn aan er maar om ook ik je wat",
    "swedish": "och att det som en ett ar pa av for inte med jag den till har om men var vi",
    "danish": "og at det som en et er pa af for ikke med jeg den til har om men var vi der",
    "norwegian": "og at det som en et er pa av for ikke med jeg den til har om men var vi der",
    "finnish": "ja on ei se etta oli mutta han ovat kun tai niin myos mita olen kuin joka",
    "hungarian": "a az es hogy nem egy is van ez meg csak de mint vagy volt ha mar azt el",
    "romanian": "si in la de nu un o este cu pe care din sa mai ca pentru sunt fost dar",
    "turkish": "ve bir bu da de icin ile cok ne gibi daha ama olarak var mi ben sen kadar",
    "catalan": "el la els les i es de que en un una per amb no al del com mes aquest seva",
    "indonesian": "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke",
}
#: Where the alphabet alone tells.
ALPHABETS = {
    "russian": r"\u0400-\u04ff",
    "greek": r"\u0370-\u03ff",
    "arabic": r"\u0600-\u06ff",
    "hindi": r"\u0900-\u097f",
    "tamil": r"\u0b80-\u0bff",
    "armenian": r"\u0530-\u058f",
    "simple": CJK + r"\u0590-\u05ff\u0e00-\u0e7f",
}

LEXIZE = r"""
-- What terms of a query mean in languages: folded, the exact words, and in each language the stems
-- and the parts of an identifier. A function, as planning this takes longer than running it.
CREATE FUNCTION notes_search_lexize(terms text[], phrases boolean[], languages text[])
RETURNS TABLE (place bigint, folded text, exact text, language text, stems text, parts text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT term.place, f.folded, plainto_tsquery('simple', b.bare)::text, l.language,
    CASE WHEN term.phrase THEN phraseto_tsquery(l.language::regconfig, b.bare)
      ELSE plainto_tsquery(l.language::regconfig, b.bare) END::text,
    CASE WHEN NOT term.phrase THEN
      plainto_tsquery(l.language::regconfig, notes_search_parts(b.bare)) END::text
  FROM unnest(terms, phrases) WITH ORDINALITY AS term (typed, phrase, place)
  CROSS JOIN LATERAL (SELECT notes_search_fold(term.typed) AS folded OFFSET 0) AS f
  CROSS JOIN LATERAL (SELECT regexp_replace(f.folded, '[@C@]+', ' ', 'g') AS bare OFFSET 0) AS b
  CROSS JOIN unnest(languages) AS l (language)
  ORDER BY term.place;
END $$;
"""

LANGUAGE = r"""
-- The configuration for a text, by its alphabet or its commonest words; English where none tells.
CREATE FUNCTION notes_search_guess(folded text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  head text := lower(left(folded, 1000));
  guess text;
BEGIN
  IF octet_length(head) > 1.3 * char_length(head) THEN
    SELECT a.language INTO guess FROM (VALUES @ALPHABETS@) AS a (language, letters)
    ORDER BY regexp_count(head, a.letters) DESC LIMIT 1;
    RETURN guess;
  END IF;
  SELECT c.language INTO guess
  FROM (VALUES @WORDS@) AS c (word, language, place)
  JOIN unnest(string_to_array(regexp_replace(head, '[^[:alnum:]]+', ' ', 'g'), ' ')) AS w (word)
    USING (word)
  GROUP BY c.language, c.place HAVING count(*) > 1 ORDER BY count(*) DESC, c.place LIMIT 1;
  RETURN coalesce(guess, 'english');
END $$;
"""

ENTRIES = r"""
-- Write entries of a note from the character `first` on, `number` of them at most. What is left is
-- one pending entry: a long text is not indexed while its writer waits.
CREATE FUNCTION notes_search_write(note notes_note, first integer, number integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  length integer := char_length(note.content);
  size integer := 100000;
  whole boolean := first = 1 AND length <= size;
  language text := note.language;
  config regconfig;
  common tsvector;
  vector tsvector;
  piece text;
BEGIN
  IF language = '' THEN
    SELECT u.language INTO language FROM @USERS@ AS u WHERE u.id = note.owner_id;
  END IF;
  IF coalesce(language, '') = '' THEN
    language := notes_search_guess(
      notes_search_fold(left(note.title, 200) || ' ' || left(note.content, 1000)));
  END IF;
  SELECT c.oid INTO config FROM pg_ts_config AS c WHERE c.cfgname = language;
  IF config IS NULL THEN
    language := 'simple';
    config := 'simple';
  END IF;
  common := array_to_tsvector(
      ARRAY['=o:' || note.owner_id, '=l:' || language, '=d:' || md5(note.folder)]
      || ARRAY(SELECT DISTINCT '=t:' || left(tag, 300) FROM unnest(note.tags_folded[:64]) AS tag)
      || ARRAY(SELECT '=f:' || md5('/' || array_to_string(names[:depth], '/') || '/')
               FROM string_to_array(trim(BOTH '/' FROM note.folder), '/') AS names,
                    generate_series(1, least(cardinality(names), 64)) AS depth))
    || setweight(notes_search_vector(config, notes_search_fold(left(note.title, 1000))), 'A');
  IF note.tags <> '{}' THEN
    common := common || setweight(to_tsvector(config,
      notes_search_fold(left(array_to_string(note.tags[:64], ' '), 6400))), 'C');
  END IF;
  LOOP
    -- PostgreSQL counts no positions beyond 16,383, and a phrase needs them.
    piece := substr(note.content, first, size);
    WHILE number > 0 AND size > 20000 AND char_length(piece) > 32000
      AND regexp_count(piece, '\s+') > 16000 LOOP
      size := size * 2 / 3;
      whole := false;
      piece := left(piece, size);
    END LOOP;
    IF number = 0 THEN
      vector := common;
    ELSE
      BEGIN
        vector := common || setweight(notes_search_vector(
          config, notes_search_fold(piece)), 'B');
      EXCEPTION WHEN program_limit_exceeded THEN
        -- PostgreSQL holds no more than 1 MiB of different words in a vector.
        size := size / 2;
        whole := false;
        CONTINUE;
      END;
    END IF;
    INSERT INTO notes_notesearchentry
      (note_id, start, owner_id, updated, language, whole, pending, tsv)
    VALUES
      (note.id, first, note.owner_id, note.updated, language, whole, number = 0, vector);
    EXIT WHEN whole OR number = 0 OR first + size > length;
    -- Words and phrases that the cut goes through are whole in the next entry.
    first := first + size - 200;
    size := 100000;
    number := number - 1;
  END LOOP;
END $$;

CREATE FUNCTION notes_search_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM notes_notesearchentry WHERE note_id = OLD.id;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.deleted IS NULL THEN
    PERFORM notes_search_write(NEW, 1, 2);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER notes_search_follow
AFTER INSERT OR DELETE OR UPDATE OF id, title, content, folder, tags, tags_folded, language,
  owner_id, updated, deleted
ON notes_note FOR EACH ROW EXECUTE FUNCTION notes_search_follow();

-- Go on with a note that has a pending entry; whether there was something to do.
CREATE FUNCTION notes_search_go_on(id uuid, number integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  note notes_note;
  first integer;
BEGIN
  SELECT * INTO note FROM notes_note AS n WHERE n.id = notes_search_go_on.id FOR NO KEY UPDATE;
  DELETE FROM notes_notesearchentry AS e WHERE e.note_id = notes_search_go_on.id AND e.pending
  RETURNING e.start INTO first;
  IF first IS NULL OR note.id IS NULL THEN
    RETURN false;
  END IF;
  PERFORM notes_search_write(note, first, number);
  RETURN true;
END $$;
"""

#: Vectors stay in their row: a search that reads an owner's entries reads nothing else.
STORAGE = """
ALTER TABLE notes_notesearchentry SET (
  toast_tuple_target = 8160, autovacuum_vacuum_insert_scale_factor = 0.02
);
ALTER TABLE notes_notesearchentry ALTER COLUMN tsv SET STORAGE MAIN;
"""

DROP = """
DROP TRIGGER notes_search_follow ON notes_note;
DROP FUNCTION notes_search_follow();
DROP FUNCTION notes_search_go_on(uuid, integer);
DROP FUNCTION notes_search_write(notes_note, integer, integer);
DROP FUNCTION notes_search_guess(text);
DROP FUNCTION notes_search_lexize(text[], boolean[], text[]);
DROP FUNCTION notes_search_vector(regconfig, text);
DROP FUNCTION notes_search_pairs(text);
DROP FUNCTION notes_search_parts(text);
DROP FUNCTION notes_search_fold(text);
"""


def install(apps, schema_editor):
    alphabets = ", ".join(f"('{name}', '[{letters}]')" for name, letters in ALPHABETS.items())
    words = ", ".join(
        f"('{word}', '{language}', {place})"
        for place, (language, text) in enumerate(COMMON_WORDS.items())
        for word in text.split()
    )
    users = apps.get_model(settings.AUTH_USER_MODEL)._meta.db_table
    sql = FUNCTIONS + LEXIZE + LANGUAGE + ENTRIES + STORAGE
    for name, value in {
        "@M@": MARKS,
        "@C@": CJK,
        "@ALPHABETS@": alphabets,
        "@WORDS@": words,
        "@USERS@": schema_editor.quote_name(users),
    }.items():
        sql = sql.replace(name, value)
    schema_editor.execute(sql, params=None)


def remove(apps, schema_editor):
    schema_editor.execute(DROP, params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("notes", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [migrations.RunPython(install, remove)]
