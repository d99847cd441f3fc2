"""What files of other programs become."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notes.transfer import front_matter, texts
from notes.transfer.dialects import Draft, draft, hashtags, skipped
from notes.transfer.exceptions import FileRefused
from tests.effort import growth

MODIFIED = datetime(2024, 5, 6, tzinfo=UTC)


def read(text: str, path: str = "Folder/My note.md") -> Draft:
    return draft(path.split("/"), text, MODIFIED)


def test_plain_file_is_named_by_its_path_and_dated_by_its_file():
    note = read("# Heading\n\ntext\n")
    assert (note.title, note.folder, note.content) == ("My note", "/Folder/", "# Heading\n\ntext\n")
    assert (note.created, note.updated, note.tags, note.remarks) == (MODIFIED, MODIFIED, [], [])


def test_obsidian_note_keeps_links_and_gives_its_tags():
    text = (
        "---\ntags: [Project, area/home]\naliases:\n  - Other\ncreated: 2023-01-02\n---\n"
        "See [[Other note|that]] and ![[picture.png]] #todo #Project\n"
        "```\n#not-in-code\n```\n`#nor-here` issue#5 #123 ##no \\#no (#no) #y2024\n"
    )
    note = read(text)
    assert note.tags == ["Project", "area/home", "todo", "y2024"]
    assert note.content == "---\naliases:\n  - Other\n---\n" + text.split("---\n", 2)[2]
    assert note.created == datetime(2023, 1, 2, tzinfo=UTC)
    assert note.remarks == ["Kept at the top of the text as front matter: aliases."]


def test_joplin_export_gives_title_times_and_listed_tags_alone():
    note = read(
        "---\ntitle: A: b\nupdated: 2024-02-03 04:05:06Z\ncreated: 2024-01-02 03:04:05Z\n"
        "latitude: 1.0\ntags:\n  - export\n  - in port\n---\n\n\nBody #not a tag\n".replace(
            "A: b", "'A: b'"
        )
    )
    assert (note.title, note.tags, note.content) == (
        "A: b",
        ["export", "in port"],
        "---\nlatitude: 1.0\n---\n\n\nBody #not a tag\n",
    )
    assert note.created == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert note.updated == datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert note.remarks == ["Kept at the top of the text as front matter: latitude."]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\nJust a line\n---\nand text", "is text and has no fields"),
        ("---\n- a list\n---\n", "is a list and has no fields"),
        ("---\ntitle: a: b\n---\nx", "is not valid YAML (line 2)"),
        ("---\ndate: {{date}}\n---\nx", "is not valid YAML"),
        ("---\nx: [\n---\n", "is not valid YAML"),
        ("---\n\tx: 1\n---\n", "is not valid YAML"),
        ("---\ntitle: A\ntitle: B\n---\nx", "is not valid YAML (line 2)"),
        ("---\nx: {a: 1, a: 2}\n---\nx", "is not valid YAML"),
    ],
)
def test_block_that_is_no_object_stays_text(text: str, why: str):
    note = read(text)
    assert (note.title, note.content) == ("My note", text)
    assert note.remarks[0].startswith(f"The front matter {why}")


PROPERTIES = (
    "status:   'draft' # by hand\n# a comment\npublish: true\ncssclass:\n  - wide\n\n"
    '"quoted key": |\n  two\n  lines\n'
)


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        ("# first\ntitle: T\n", "# first\ntitle: T\n"),
        ("title: T # beside\nupdated: 2024-01-01\n", "title: T # beside\n"),
        ("title: T\ntags: #project #todo\n", "tags: #project #todo\n"),
        ("title: 'T # none'\ndate: 2024-01-01\n# last\n", "date: 2024-01-01\n# last\n"),
        ("ä: ö\ntitle: T\n  # ü\n", "ä: ö\ntitle: T\n  # ü\n"),
        ("title: |\n  T # none\n", ""),
        ("\r\ntitle: T\r\nx: y\r\n", "x: y\r\n"),
    ],
)
def test_comments_stay_with_their_field(block: str, kept: str):
    end = "\r\n" if "\r" in block else "\n"
    note = read(f"---{end}{block}---{end}body")
    assert note.title.startswith("T")
    assert note.content == (f"---{end}{kept}---{end}body" if kept else "body")
    assert bool(note.remarks) is bool(kept)
    exported = front_matter.written({"title": "T", "notewire": 1}, note.content)
    assert read(exported).content == note.content


def test_properties_of_another_program_stay_letter_for_letter():
    text = f"---\n{PROPERTIES}---\n\nbody"
    assert read(text).content == text
    mixed = f"---\ntags: [a]\n{PROPERTIES}title: T\n---\n\nbody"
    note = read(mixed)
    assert (note.title, note.tags, note.content) == ("T", ["a"], text)
    assert note.remarks == [
        "Kept at the top of the text as front matter: status, publish, cssclass, quoted key."
    ]
    exported = front_matter.written({"title": "T", "notewire": 1}, note.content)
    assert read(exported).content == text
    assert read(read(exported).content).content == text


@pytest.mark.parametrize("block", ["{aliases: [x], title: T}\n", "  title: T\n  aliases: [x]\n"])
def test_properties_of_an_unusual_block_stay(block: str):
    note = read(f"---\n{block}---\nbody")
    assert note.title == "T"
    fields, body = front_matter.read(note.content)
    assert (fields, body) == ({"aliases": ["x"]}, "body")


@pytest.mark.parametrize(
    "field",
    [
        "created: notadate",
        "created: 2020-02-30",
        "updated: soon",
        "id: nope",
        "language: klingon",
        "title: [a, b]",
        "tags: {a: b}",
        "tags: [[a]]",
    ],
)
@pytest.mark.parametrize("mark", ["", "notewire: 1\n"])
def test_field_that_cannot_be_read_is_said_and_stays(field: str, mark: str):
    note = read(f"---\n{field}\n{mark}---\nbody")
    assert note.content == f"---\n{field}\n---\nbody"
    name = field.partition(":")[0]
    assert note.remarks[0].startswith(f"{name}: ")
    assert note.remarks[0].endswith(" is not understood.")


def test_folder_of_a_plain_file_is_a_property_like_others():
    note = read("---\nfolder: elsewhere\nlanguage: german\n---\nbody")
    assert (note.folder, note.language) == ("/Folder/", "german")
    assert note.content == "---\nfolder: elsewhere\n---\nbody"


@pytest.mark.parametrize("mark", ["", "notewire: 1\n"])
def test_fields_that_say_nothing_are_passed_over(mark: str):
    note = read(f"---\ncreated:\ntags: []\nid: ''\ntitle: T\n{mark}---\nbody")
    assert (note.title, note.content, note.remarks) == ("T", "body", [])


@pytest.mark.parametrize("text", ["", "---", "---\n", "---\ntext\n", "----\na: 1\n----\n", "--- x"])
def test_line_that_closes_nothing_is_text(text: str):
    assert (read(text).content, read(text).remarks) == (text, [])


def test_words_that_yaml_takes_for_other_things_stay_words():
    note = read("---\ntitle: 2024-01-01\ntags: [no, 1e3, 12:30:45, null, ~]\nid: 12\n---\n")
    assert (note.title, note.tags, note.id) == ("2024-01-01", ["no", "1e3", "12:30:45"], None)


def test_aliases_are_refused_before_they_grow():
    bomb = "---\na: &a [x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 8)}]\n" for n in range(20)
    )
    with pytest.raises(FileRefused, match="aliases"):
        read(bomb + "---\n")


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("a: " + "x" * 66_000, "64 KiB"),
        ("a: " + "[" * 50 + "]" * 50, "levels deep"),
        ("é" * 40_000, "64 KiB"),
    ],
)
def test_block_that_is_too_large_or_deep_is_refused(block: str, why: str):
    with pytest.raises(FileRefused, match=why):
        read(f"---\n{block}\n---\n")


@pytest.mark.parametrize("number", ["1" * 6000, "0x" + "f" * 9000, "!!python/object:os.system x"])
def test_numbers_and_tags_of_yaml_are_only_text(number: str):
    text = f"---\ncount: {number}\n---\nx"
    assert read(text).content == text


@given(st.text(max_size=300))
def test_no_text_makes_reading_fail(text: str):
    for whole in (text, f"---\n{text}\n---\nbody"):
        with suppress(FileRefused):
            once = read(whole)
            assert read(once.content, "Folder/My note.md").content == once.content


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "#a" * 100_000,
        "#" * 200_000,
        "`" * 200_000,
        "---\n" * 50_000,
        "#1/" * 80_000,
        "#a " * 100_000,
    ],
)
def test_long_repetitions_take_time_in_proportion(text: str):
    def parse(size: int) -> None:
        read(text[:size])
        sum(1 for _ in hashtags(text[:size]))

    assert growth(parse, len(text)) < 4


def test_tags_beyond_what_a_note_may_have_are_said():
    note = read(" ".join(f"#tag{number}" for number in range(70)) + " #" + "x" * 101)
    assert len(note.tags) == 64
    assert "Some of its tags are left out" in note.remarks[0]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "soon"])
def test_time_that_is_none_is_passed_over(time: str):
    assert read(f"---\ncreated: {time}\n---\n").created == MODIFIED


@pytest.mark.parametrize(
    ("data", "text", "remark"),
    [
        ("caf\u00e9".encode(), "caf\u00e9", ""),
        ("caf\u00e9".encode("utf-8-sig"), "caf\u00e9", ""),
        ("caf\u00e9".encode("cp1252"), "caf\u00e9", "Read as Windows-1252: it is not UTF-8."),
        ("caf\u00e9".encode("utf-16"), "caf\u00e9", ""),
        (b"\xfe\xff" + "caf\u00e9".encode("utf-16-be"), "caf\u00e9", ""),
        ("caf\u00e9".encode("utf-32"), "caf\u00e9", ""),
        (b"", "", ""),
    ],
)
def test_text_is_read_in_its_encoding(data: bytes, text: str, remark: str):
    assert texts.decoded(data) == (text, remark)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7\x00", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\x00", "a PNG image"),
        (bytes(range(256)), "binary data"),
        (b"\xff\xfe\x00\xd8", "damaged"),
        (b"\xff\xfea\x00\x00\x00", "null characters"),
        (b"text\0", "binary data"),
    ],
)
def test_what_is_no_text_is_refused_by_its_kind(data: bytes, kind: str):
    with pytest.raises(FileRefused, match=kind):
        texts.decoded(data)


@pytest.mark.parametrize(
    ("path", "is_skipped"),
    [
        ("a.md", False),
        ("A.MARKDOWN", False),
        ("a.txt", False),
        ("a.png", True),
        ("a", True),
        (".trash/a.md", True),
        ("__MACOSX/._a.md", True),
    ],
)
def test_only_texts_become_notes(path: str, is_skipped: bool):
    assert bool(skipped(path.split("/"))) == is_skipped


@given(st.dictionaries(st.sampled_from("abc"), st.text(st.characters(exclude_categories=["Cs"]))))
def test_block_is_read_as_it_was_written(fields: dict[str, object]):
    text = front_matter.written(fields, "body")
    assert front_matter.read(text.encode().decode()) == (fields, "body")


def test_own_file_that_another_program_rewrote_is_read_with_what_it_added():
    note = read("---\naliases: [x]\ntags: one, two\ntitle: T\nnotewire: 1\n---\nbody #three")
    assert (note.title, note.tags, note.content) == (
        "T",
        ["one", "two"],
        "---\naliases: [x]\n---\nbody #three",
    )
    assert "aliases" in note.remarks[0]
