"""The language of a person's notes: over REST, and what search makes of the choice."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.models import User
from accounts.services import token_create
from notes import languages
from notes.exceptions import NoteInvalid
from notes.models import NoteSearchEntry
from notes.search import jobs, search
from notes.search.filling import REINDEX_TASK, reindex_step
from tests.notes.test_api import Api
from tests.notes.writing import note_create

LANGUAGE = "/api/notes/language/"


@pytest.fixture
def api(alice: User) -> Api:
    return Api(alice)


def found(owner: User, query: str) -> list[str]:
    return [hit.title for hit in search(owner=owner, query=query).hits]


def entries() -> dict[str, int]:
    rows = NoteSearchEntry.objects.values_list("language", flat=True)
    return {language: list(rows).count(language) for language in rows}


def reindexed() -> int:
    """Carry out the jobs that wait; how many there were."""
    waiting = ProcrastinateJob.objects.filter(task_name=REINDEX_TASK)
    for job in waiting:
        asyncio.run(jobs.reindex(**job.args))
    return waiting.count()


def test_choice_reads_notes_without_a_language_of_their_own_anew(
    units: None, alice: User, mallory: User
) -> None:
    note_create(owner=alice, title="old", content="xylophon Bücher")
    note_create(owner=alice, title="french", content="chevaux", language="french")
    note_create(owner=alice, title="long", content="Bücher " * 60_000)
    note_create(owner=mallory, title="hers", content="xylophon Bücher")
    assert found(alice, "büchern") == []
    languages.language_set(owner=alice, language="german")
    assert reindexed() == 1
    assert sorted(found(alice, "büchern")) == ["long", "old"]
    assert found(alice, "cheval") == ["french"]
    assert found(mallory, "büchern") == []
    asyncio.run(jobs.fill())
    parts = NoteSearchEntry.objects.exclude(language="french").filter(owner_id=alice.pk)
    assert set(parts.values_list("language", "pending")) == {("german", False)}


def test_same_choice_again_does_nothing(alice: User) -> None:
    languages.language_set(owner=alice, language="")
    assert not ProcrastinateJob.objects.filter(task_name=REINDEX_TASK).exists()


def test_reindexing_goes_on_in_steps(alice: User) -> None:
    for number in range(5):
        note_create(owner=alice, title=str(number), content="Häuser")
    languages.language_set(owner=alice, language="german")
    after: UUID | None = UUID(int=0)
    steps = []
    while after is not None:
        after = reindex_step(owner_id=alice.pk, after=after, notes=2)
        steps.append(entries().get("german", 0))
    assert steps == [2, 4, 5, 5]


def test_language_that_there_is_not_is_refused(alice: User) -> None:
    with pytest.raises(NoteInvalid, match="One of: "):
        languages.language_set(owner=alice, language="klingon")
    alice.refresh_from_db()
    assert alice.language == ""


def test_rest_tells_and_changes_it(api: Api, alice: User) -> None:
    told = api("GET", LANGUAGE).json()
    assert told["language"] == ""
    assert {"german", "english", "simple"} <= set(told["languages"])
    assert api("PUT", LANGUAGE, {"language": "german"}).json()["language"] == "german"
    alice.refresh_from_db()
    assert alice.language == "german"
    refused = api("PUT", LANGUAGE, {"language": "klingon"})
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, ["language"])
    assert api("PUT", LANGUAGE, {}).status_code == 400
    assert api("PUT", LANGUAGE, {"language": ""}).json()["language"] == ""


def test_strangers_and_anonymous_reach_their_own_or_nothing(
    api: Api, alice: User, mallory: User
) -> None:
    assert Api(mallory)("PUT", LANGUAGE, {"language": "german"}).status_code == 200
    assert api("GET", LANGUAGE).json()["language"] == ""
    assert Api()("GET", LANGUAGE).status_code == 401
    assert Api()("PUT", LANGUAGE, {"language": "german"}).status_code == 401
    _, secret = token_create(owner=alice, name="reads", scopes=["read"])
    with_token = {"Authorization": f"Bearer {secret}"}
    assert Api()("GET", LANGUAGE, **with_token).status_code == 200
    assert Api()("PUT", LANGUAGE, {"language": "german"}, **with_token).status_code == 403
