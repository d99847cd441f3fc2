"""A log becomes short when its run is over, and tells the same as before."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.events import LoggedEvent, Snapshot
from chat.loop.folding import fold
from chat.models import Run, RunEvent
from chat.runs import event_log, lifecycle, resume
from chat.testing import ScriptedProvider, calls, says
from chat.types import Completion, TextDelta, ThinkingDelta
from tests.chat.runs.conftest import Stage
from tools.threads import unit_of_work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("units")]

DELTAS = {"text_delta", "thinking_delta"}

words = st.lists(
    st.builds(
        lambda kind, text: kind(text),
        st.sampled_from([TextDelta, ThinkingDelta]),
        st.sampled_from(["milk ", "\n\n", "käse\u2028", '"\\', "x"]),
    ),
    max_size=8,
)


@st.composite
def scripts(draw) -> list:
    """Model calls that say something, each but the last with a tool call."""
    spoken = draw(st.lists(words, min_size=1, max_size=3))
    script = []
    for n, deltas in enumerate(spoken):
        texts = [d.text for d in deltas if isinstance(d, TextDelta)]
        thoughts = [d.text for d in deltas if isinstance(d, ThinkingDelta)]
        last = n == len(spoken) - 1
        said = says("")[-1] if last else calls(("current_time", {}))[-1]
        assert isinstance(said, Completion)
        whole = Completion(text="".join(texts), thinking="".join(thoughts), calls=said.calls)
        script.append([*deltas, whole])
    return script


async def carried(user, script) -> Run:
    run = await unit_of_work(lifecycle.run_start, owner=user, content="Go.")
    async with Stage(ScriptedProvider(*script)) as runtime:
        await runtime.carry(run)
    return run


def log(run) -> tuple[LoggedEvent, ...]:
    return event_log.events_after(run_id=run.id, position=event_log.START, limit=10_000)


def age(run) -> None:
    Run.objects.filter(id=run.id).update(finished=timezone.now() - timedelta(minutes=5))


async def followed(run, after=None) -> list[LoggedEvent]:
    seen: list[LoggedEvent] = []
    async with Stage(None) as runtime:
        async for batch in runtime.events(run.id, after):
            seen.extend(batch or ())
    return seen


@pytest.mark.thorough
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(script=scripts())
def test_folded_log_tells_the_same_from_every_point(user, script):
    run = asyncio.run(carried(user, script))
    whole = log(run)
    age(run)
    event_log.logs_fold()
    short = log(run)

    assert fold(i.event for i in short) == fold(i.event for i in whole)
    assert _parts(short) == len([i for i in short if i.event.name in DELTAS])
    assert [i for i in short if i.event.name not in DELTAS] == [
        i for i in whole if i.event.name not in DELTAS
    ]
    kept = {item.id for item in short}
    for n, item in enumerate(whole[:-1]):
        position = (item.attempt, item.seq)
        told = asyncio.run(followed(run, position))
        if item.id in kept:
            seen = [*whole[: n + 1], *told]
        else:
            assert isinstance(told[0].event, Snapshot)
            assert resume.position_of(run_id=run.id, resume=item.id) is None
            seen = told
        assert fold(i.event for i in seen) == fold(i.event for i in whole)


def _parts(log) -> int:
    """How often what is said changes its kind or message, or is interrupted."""
    last, parts = None, 0
    for item in log:
        spoken = item.event.name in DELTAS
        now = (item.event.name, item.event.message_id) if spoken else None
        parts += spoken and now != last
        last = now
    return parts


def test_run_that_goes_on_or_has_just_ended_is_not_folded(user):
    run = asyncio.run(carried(user, [says("one two three", pieces=3)]))
    assert event_log.logs_fold() == 0
    age(run)
    Run.objects.filter(id=run.id).update(status="running")
    assert event_log.logs_fold() == 0
    Run.objects.filter(id=run.id).update(status="finished")
    assert [event_log.logs_fold(), event_log.logs_fold()] == [1, 0]


def test_logs_of_two_runs_are_not_mixed(user):
    scripts_of = [[says("one two three", pieces=3)], [says("uno dos tres", pieces=3)]]
    runs = [asyncio.run(carried(user, script)) for script in scripts_of]
    before = [fold(i.event for i in log(run)) for run in runs]
    for run in runs:
        age(run)
    assert event_log.logs_fold() == 2
    assert [fold(i.event for i in log(run)) for run in runs] == before
    assert RunEvent.objects.filter(kind="text_delta").count() == 2


@pytest.fixture
def small_pages(monkeypatch):
    """Two events a page, and every word an event of its own."""
    monkeypatch.setattr(event_log, "PAGE_EVENTS", 2)
    monkeypatch.setattr(django_settings, "NOTEWIRE_GATHER_MS", 0)


def test_listener_that_is_still_reading_when_the_log_is_folded_gets_a_snapshot(user, small_pages):
    async def read() -> list[LoggedEvent]:
        run = await carried(user, [says("one two three four", pieces=4)])
        await unit_of_work(age, run)
        seen: list[LoggedEvent] = []
        async with Stage(None) as runtime:
            async for batch in runtime.events(run.id):
                seen.extend(batch or ())
                if len(seen) == 2:
                    assert await unit_of_work(event_log.logs_fold) == 1
        return seen

    seen = asyncio.run(read())
    assert [item.event.name for item in seen] == [
        "run_started", "text_delta", "snapshot", "done",
    ]  # fmt: skip
    assert [m.text for m in fold(i.event for i in seen).messages] == ["one two three four"]


def test_snapshot_that_is_read_while_the_log_is_folded_has_nothing_twice(
    user, small_pages, monkeypatch
):
    run = asyncio.run(carried(user, [says("one two three four", pieces=4)]))
    expected = resume.snapshot_of(run_id=run.id)
    age(run)
    read = event_log.page_after
    folded: list[int] = []

    def fold_after_first(*, run_id, position):
        found = read(run_id=run_id, position=position)
        folded.append(event_log.logs_fold())
        return found

    monkeypatch.setattr(event_log, "page_after", fold_after_first)
    assert resume.snapshot_of(run_id=run.id) == expected
    assert folded[0] == 1
