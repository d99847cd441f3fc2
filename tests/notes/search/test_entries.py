"""Search entries: in step with notes whoever writes them, long notes, languages, bounds."""

from __future__ import annotations

import asyncio
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.models import User
from notes import services
from notes.exceptions import NoteSaveTimeout
from notes.models import Note, NoteSearchEntry
from notes.rules import MAX_CONTENT_BYTES
from notes.search import SearchFilters, filling, jobs, search
from notes.search.filling import FILL_TASK, fill, fill_step
from tests.notes.writing import note_create, note_delete, note_update

FAR = 150_000


def found(owner: User, query: str, **options: Any) -> list[str]:
    return [hit.title for hit in search(owner=owner, query=query, **options).hits]


def languages() -> set[str]:
    return set(NoteSearchEntry.objects.values_list("language", flat=True))


def filled(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]


def test_entries_follow_notes_that_sql_writes(alice: User) -> None:
    note = note_create(owner=alice, title="first", content="milk")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE notes_note SET content = 'eggs', tags_folded = '{dairy}'")
    assert found(alice, "eggs", filters=SearchFilters(tags=("Dairy",))) == ["first"]
    assert found(alice, "milk") == []
    Note.objects.filter(pk=note.pk).update(folder="/a/b/")
    assert found(alice, "eggs", filters=SearchFilters(folder="a")) == ["first"]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM notes_noterevision")
        cursor.execute("DELETE FROM notes_note")
    assert not NoteSearchEntry.objects.exists()


def test_entry_of_a_note_in_the_bin_is_gone_until_it_is_restored(alice: User) -> None:
    note = note_create(owner=alice, title="first", content="milk")
    note_delete(owner=alice, note_id=note.pk)
    assert not NoteSearchEntry.objects.exists()
    Note.objects.update(deleted=None)
    assert found(alice, "milk") == ["first"]


@pytest.mark.parametrize(
    ("content", "language"),
    [
        ("The house and the garden of the king", "english"),
        ("Das Haus und der Garten sind nicht groß", "german"),
        ("La maison et le jardin du roi sont dans les bois", "french"),
        ("Дом и сад короля стоят у реки", "russian"),
        ("Το σπίτι και ο κήπος του βασιλιά", "greek"),
        ("东京都的房子和花园", "simple"),
        ("東京都に住んでいます", "simple"),
        ("xylophone", "english"),
        ("", "english"),
        ("🎂 Die Katzen 🎁 und die Häuser 🎈", "german"),
        ("„Der“ – „Mann“ – „und“ – „die“ …", "german"),
        ("★★★★★ les maisons et les jardins ★★★★★", "french"),
        ("🎉🎉🎉", "english"),
        ("🎉🎉 Дом и сад", "russian"),
        ("Django使用指南 v2でテスト", "simple"),
        ("मुंबई शहर में बारिश", "hindi"),
    ],
)
def test_language_is_guessed(alice: User, content: str, language: str) -> None:
    note_create(owner=alice, content=content)
    assert languages() == {language}


def test_language_is_the_notes_own_or_the_persons(alice: User) -> None:
    alice.language = "german"
    alice.save()
    note_create(owner=alice, title="1", content="The houses and the garden")
    assert languages() == {"german"}
    note_create(owner=alice, title="2", content="Das Haus und die Häuser", language="french")
    assert languages() == {"german", "french"}
    alice.language = "no such language"
    alice.save()
    note_create(owner=alice, title="3", content="x")
    assert languages() == {"german", "french", "simple"}


def test_words_are_read_in_every_language_of_the_owner(alice: User) -> None:
    note_create(owner=alice, title="de", content="Die Häuser stehen", language="german")
    note_create(owner=alice, title="en", content="Houses die", language="english")
    note_create(owner=alice, title="fr", content="Les chevaux", language="french")
    assert found(alice, "haus") == ["de"]
    assert found(alice, "house") == ["en"]
    assert set(found(alice, "die")) == {"de", "en"}
    assert found(alice, "die haus") == ["de"]
    assert found(alice, "das haus") == ["de"]
    assert found(alice, "cheval") == ["fr"]
    assert found(alice, "-haus -house") == ["fr"]


def test_words_are_read_in_the_language_that_is_asked_for(alice: User) -> None:
    note_create(owner=alice, title="en", content="The news", language="english")
    note_create(owner=alice, title="de", content="Die Bücher", language="german")
    assert found(alice, "büchern", language="german") == ["de"]
    assert found(alice, "büchern", language="english") == []
    assert found(alice, "bücher", language="english") == ["de"]
    assert found(alice, "news", language="german") == ["en"]


def test_typing_finds_beginnings_and_says_which_hits_are_whole(alice: User) -> None:
    note_create(owner=alice, title="1", content="planet")
    note_create(owner=alice, title="2", content="plan")
    page = search(owner=alice, query="plan", typing=True)
    assert [(hit.title, hit.mode) for hit in page.hits] == [("2", "words"), ("1", "prefix")]
    assert [hit.excerpt[slice(*hit.marks[0])] for hit in page.hits] == ["plan", "planet"]
    assert found(alice, "plan") == ["2"]
    assert found(alice, "plan ", typing=True) == ["2"]


def test_tags_are_found_as_words(alice: User) -> None:
    note_create(owner=alice, title="1", content="x", tags=["Groceries"])
    assert found(alice, "grocery") == ["1"]


def test_facets_count_folders_and_tags_of_all_hits(alice: User) -> None:
    for number in range(3):
        note_create(owner=alice, content="milk", folder="ab"[number % 2], tags=["x", f"t{number}"])
    facets = search(owner=alice, query="milk").facets
    assert facets is not None
    assert [(each.value, each.count) for each in facets.folders] == [("/a/", 2), ("/b/", 1)]
    assert [(each.value, each.count) for each in facets.tags][0] == ("x", 3)


def test_words_of_a_long_note_are_found_wherever_they_are(alice: User) -> None:
    body = filled("filler words here. ", FAR)
    note_create(owner=alice, title="long", content=f"beginning {body} wild geese")
    note_create(owner=alice, title="short", content="beginning and geese, no words")
    assert set(found(alice, "beginning geese")) == {"long", "short"}
    assert found(alice, "filler geese") == ["long"]
    assert found(alice, "beginning -wild") == ["short"]
    assert found(alice, "beginning -geese") == []
    assert found(alice, '"wild geese"') == ["long"]
    assert found(alice, '"beginning geese"') == []
    assert found(alice, "-wild") == ["short"]
    assert found(alice, "absent or wild") == ["long"]
    hit = next(hit for hit in search(owner=alice, query="wild geese").hits)
    assert "wild geese" in hit.excerpt
    assert len(search(owner=alice, query="filler").hits) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("place", [99_790, 99_900, 99_995, 100_000])
@pytest.mark.parametrize("filler", ["xy ", "a ", "exceptionally "])
def test_phrase_is_found_through_a_cut_and_behind_many_words(
    alice: User, place: int, filler: str
) -> None:
    content = filled(filler, place) + " wild geese " + "z " * 99
    note_create(owner=alice, title="long", content=content)
    fill()
    assert found(alice, "geese") == ["long"]
    assert found(alice, '"wild geese"') == ["long"]


@pytest.mark.thorough
def test_last_line_of_the_longest_note_is_found_once_it_is_filled(
    alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    line = "Extraordinary circumstances notwithstanding, considerations predominated ordinarily.\n"
    with django_capture_on_commit_callbacks(execute=True):
        content = filled(line, MAX_CONTENT_BYTES - 14) + "\nlast needle.\n"
        note = note_create(owner=alice, title="5 MB", content=content)
    assert found(alice, "extraordinary") == ["5 MB"]
    assert ProcrastinateJob.objects.filter(task_name=FILL_TASK).exists()
    assert fill_step()
    fill()
    assert not fill_step()
    hit = search(owner=alice, query="last needles").hits[0]
    assert hit.title == "5 MB"
    assert "last needle." in hit.excerpt
    note_update(owner=alice, note_id=note.pk, content="short")
    assert NoteSearchEntry.objects.count() == 1


@pytest.mark.thorough
def test_worker_fills_what_is_pending(units: None, alice: User) -> None:
    note_create(owner=alice, title="long", content=filled("x ", 450_000) + "needle")
    asyncio.run(jobs.fill.func())
    assert not NoteSearchEntry.objects.filter(pending=True).exists()
    assert found(alice, "needle") == ["long"]


def test_what_is_pending_of_no_note_is_dropped(alice: User) -> None:
    note = note_create(owner=alice, title="long", content=filled("x ", 450_000))
    NoteSearchEntry.objects.filter(pending=True).update(note_id=uuid4())
    fill()
    assert not NoteSearchEntry.objects.filter(pending=True).exists()
    assert set(NoteSearchEntry.objects.values_list("note_id", flat=True)) == {note.pk}


def entries_of_contents() -> list[tuple[int, str]]:
    """Where the rows are that hold no more than content: a row that is written anew moves."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT start, ctid::text FROM notes_notesearchentry"
            " WHERE start > 0 AND NOT whole ORDER BY start"
        )
        return list(cursor.fetchall())


def test_change_of_all_but_the_content_leaves_the_entries_of_the_content(alice: User) -> None:
    note = note_create(owner=alice, title="first", content=filled("wild geese fly. ", 450_000))
    fill_step(entries=1)
    before = entries_of_contents()
    assert len(before) == 4
    note_update(
        owner=alice, note_id=note.pk, title="second badger", folder="farm", tags=["Poultry"]
    )
    assert entries_of_contents() == before
    assert found(alice, "badgers geese") == ["second badger"]
    assert found(alice, "first") == []
    assert found(alice, "poultry") == ["second badger"]
    in_folder = SearchFilters(folder="farm", tags=("poultry",))
    assert found(alice, "wild", filters=in_folder) == ["second badger"]
    assert found(alice, "wild", filters=SearchFilters(folder="barn")) == []
    changed = Note.objects.get().updated
    assert found(alice, "wild", filters=SearchFilters(updated_before=changed)) == []
    fill()
    assert entries_of_contents()[:3] == before[:3]
    assert len(entries_of_contents()) == 7


def test_change_of_content_or_language_writes_the_entries_of_the_content_anew(alice: User) -> None:
    note = note_create(owner=alice, title="1", content=filled("wild geese fly. ", 30_000))
    before = entries_of_contents()
    note_update(owner=alice, note_id=note.pk, language="german")
    in_german = entries_of_contents()
    assert in_german != before
    assert languages() == {"german"}
    note_update(owner=alice, note_id=note.pk, content=filled("tame geese fly. ", 30_000))
    assert entries_of_contents() != in_german
    assert found(alice, "wild") == []
    note_update(owner=alice, note_id=note.pk, content="tame geese")
    assert entries_of_contents() == []
    assert found(alice, "tame") == ["1"]


def test_words_of_title_and_text_of_a_long_note_are_found_together(alice: User) -> None:
    text = filled("the filler words here. ", 30_000)
    note_create(owner=alice, title="Heron", content=f"{text} planet", tags=["Sea"])
    note_create(owner=alice, title="Egret", content="planet sea")
    page = search(owner=alice, query="heron plane", typing=True)
    assert [(hit.title, hit.mode) for hit in page.hits] == [("Heron", "prefix")]
    assert [hit.mode for hit in search(owner=alice, query="heron planet", typing=True).hits] == [
        "words"
    ]
    assert found(alice, "planet -heron") == ["Egret"]
    assert found(alice, "-planet") == []
    assert found(alice, "planet sea") == ["Egret", "Heron"]
    hit = search(owner=alice, query="heron").hits[0]
    assert (hit.title, hit.excerpt[:10]) == ("Heron", "the filler")


ADVERSARIAL = {
    "marks": "a" + "\u0300\u0323" * 100_000,
    "hebrew marks": "א" + "\u05b0\u05c1" * 100_000,
    "tibetan marks": "\u0f73" * 200_000,
    "ligatures": "\ufdfa" * 150_000,
    "hyphens": "a-" * 100_000,
    "dots": "a." * 100_000,
    "addresses": "a@b.c " * 40_000,
    "links": "http://a.b/c " * 20_000,
    "camels": "aB" * 100_000,
    "slashes": "/a" * 100_000,
    "one word": "x" * 200_000,
    "brackets": "[" * 200_000,
    "pairs": "".join(chr(0x20000 + number * 7919 % 40_000) for number in range(150_000)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_adversarial_text_is_saved_and_searchable(alice: User, kind: str) -> None:
    text = f"needle {ADVERSARIAL[kind]}"
    note_create(owner=alice, title=kind, content=text)
    fill()
    hit = search(owner=alice, query="needle").hits[0]
    assert (hit.title, hit.excerpt[:6]) == (kind, "needle")


def test_note_with_the_longest_tags_is_saved(alice: User) -> None:
    tags = [f"{number:02}" + "ΐ" * 98 for number in range(64)]
    note_create(owner=alice, title="1", content="milk", tags=tags)
    assert found(alice, "milk", filters=SearchFilters(tags=(tags[-1],))) == ["1"]


def test_save_that_takes_too_long_changes_nothing_and_says_so(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "SAVE_TIMEOUT_MS", 1)
    with pytest.raises(NoteSaveTimeout):
        note_create(owner=alice, content=filled("every word counts ", 190_000))
    assert not Note.objects.exists()


def test_save_within_a_transaction_leaves_its_time_limit_alone(alice: User) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '7s'")
        note_create(owner=alice, content="milk")
        search(owner=alice, query="milk")
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("7s",)


@pytest.mark.thorough
def test_rebuild_writes_all_entries_anew(alice: User) -> None:
    for number in range(5):
        note_create(owner=alice, title=str(number), content="milk")
    note_delete(owner=alice, note_id=Note.objects.earliest("created").pk)
    kept = note_create(owner=alice, title="long", content=filled("x ", 450_000) + "needle")
    NoteSearchEntry.objects.exclude(note_id=kept.pk).delete()
    said = StringIO()
    call_command("search_rebuild", batch=2, stdout=said)
    assert sorted(found(alice, "milk")) == ["1", "2", "3", "4"]
    assert found(alice, "needle") == ["long"]
    assert "100 %" in said.getvalue()
    assert said.getvalue().endswith("6 notes are indexed.\n")


def test_rebuild_holds_few_long_notes_at_once(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        note_create(owner=alice, title=str(number), content="x" * 600)
    batches: list[int] = []
    write = filling._write_anew

    def counted(ids: list[UUID]) -> None:
        batches.append(len(ids))
        write(ids)

    monkeypatch.setattr(filling, "_write_anew", counted)
    monkeypatch.setattr(filling, "REBUILT_BYTES", 1000)
    assert list(filling.rebuild(batch=200)) == [2, 4]
    assert list(filling.rebuild(batch=1)) == [1, 2, 3, 4]
    assert batches == [2, 2, 1, 1, 1, 1]


@pytest.mark.parametrize("batch", [0, -1])
def test_rebuild_of_no_notes_at_once_is_refused(batch: int) -> None:
    with pytest.raises(CommandError, match="at least 1 note"):
        call_command("search_rebuild", batch=batch)
