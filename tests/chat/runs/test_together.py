"""Changes of one note that a person approved in one go: the first does not make the others stale,
as long as they do just what was shown. Whatever else happens to the note asks again."""

import pytest

from chat.models import Approval, Run, ToolCall
from chat.runs import calling, deciding
from chat.testing import ScriptedProvider, calls, says
from notes import tools as note_tools
from notes.models import Note, NoteRevision
from tests.notes.writing import note_create, note_update
from tools.threads import unit_of_work

pytestmark = pytest.mark.django_db
TEXT = "- milk\n- bread\n- eggs\n"


@pytest.fixture(autouse=True)
def careful(settings):
    settings.NOTEWIRE_APPROVAL_MODE = "careful"


@pytest.fixture
def note(user, units):
    return note_create(owner=user, title="Groceries", content=TEXT)


def edit(old, new):
    return {"mode": "edit", "old_text": old, "content": new}


def append(text):
    return {"mode": "append", "content": text}


@pytest.fixture
def approved(stage, start, user, note):
    """Carry a run that asks for changes of the note, approve all, and carry it on."""

    async def carry(*changes, edited=None, between=lambda: None):
        script = calls(*(("note_update", {"note_id": str(note.pk), **each}) for each in changes))
        run = await start("Change it.")
        async with stage(ScriptedProvider(script, says("Done."))) as runtime:
            await runtime.carry(run)
            await unit_of_work(approve_all, user, run, edited or {})
            await unit_of_work(between)
            await runtime.carry(run)
        return await unit_of_work(lambda: Run.objects.get(id=run.id))

    return carry


def approve_all(user, run, edited):
    for row in Approval.objects.filter(run=run, decision="").order_by("call__position"):
        arguments = edited.get(row.call.position)
        deciding.approval_decide(
            owner=user, approval_id=row.id, decision="approved", arguments=arguments
        )


async def content(note):
    return await unit_of_work(lambda: Note.objects.get(pk=note.pk).content)


async def statuses():
    rows = ToolCall.objects.order_by("position").values_list("status", flat=True)
    return await unit_of_work(lambda: list(rows))


async def test_changes_of_different_lines_run_one_after_another(approved, note):
    run = await approved(
        edit("milk", "oat milk"), edit("eggs", "12 eggs"), append("- butter\n"), append("- flour\n")
    )
    assert run.stop_reason == "end_turn"
    assert await content(note) == "- oat milk\n- bread\n- 12 eggs\n- butter\n- flour\n"
    versions = await unit_of_work(
        lambda: list(NoteRevision.objects.order_by("version").values_list("version", flat=True))
    )
    assert versions == [1, 2, 3, 4, 5]


async def test_change_of_a_line_that_is_another_by_then_asks_again(approved, note):
    run = await approved(edit("milk", "oat milk"), edit("milk", "cream"))
    assert run.status == "awaiting_approval"
    assert await statuses() == ["done", "awaiting_approval"]
    assert await content(note) == TEXT.replace("milk", "oat milk")
    [again] = await unit_of_work(lambda: list(Approval.objects.filter(decision="")))
    assert "-- oat milk\n+- oat cream" in again.preview["diff"]


async def test_passage_that_is_there_twice_by_then_is_not_changed(approved, note):
    run = await approved(edit("milk", "bread"), edit("bread", "rolls"))
    assert run.stop_reason == "end_turn"
    assert await statuses() == ["done", "error"]
    assert await content(note) == TEXT.replace("milk", "bread")


async def test_replacing_the_whole_text_does_not_follow_a_change(approved, note, monkeypatch):
    # As if the conversation had read the note whole, before and after the first change.
    monkeypatch.setattr(note_tools, "_version_to_replace", lambda *_: None)
    run = await approved(append("- butter\n"), {"mode": "replace", "content": "- milk\n"})
    assert run.status == "awaiting_approval"
    assert await content(note) == f"{TEXT}- butter\n"


async def test_arguments_that_the_person_changed_ask_again(approved, note):
    changed = {"note_id": str(note.pk), **append("- rice\n")}
    run = await approved(append("- butter\n"), append("- flour\n"), edited={1: changed})
    assert run.status == "awaiting_approval"
    assert await statuses() == ["done", "awaiting_approval"]


@pytest.mark.parametrize("text", [f"{TEXT}- tea\n", f"- tea\n{TEXT}"])
async def test_change_of_the_persons_own_asks_again_before_the_first(approved, note, user, text):
    def write():
        note_update(owner=user, note_id=note.pk, content=text)

    run = await approved(append("- butter\n"), append("- flour\n"), between=write)
    assert run.status == "awaiting_approval"
    assert await statuses() == ["awaiting_approval", "pending"]
    assert await content(note) == text


async def test_change_of_the_persons_own_between_two_asks_again(approved, note, user, monkeypatch):
    run_it = calling.Caller.invoke

    async def invoke(self, call):
        outcome = await run_it(self, call)
        await unit_of_work(note_update, owner=user, note_id=note.pk, title="Shopping")
        return outcome

    monkeypatch.setattr(calling.Caller, "invoke", invoke)
    run = await approved(edit("milk", "oat milk"), append("- flour\n"))
    assert run.status == "awaiting_approval"
    assert await statuses() == ["done", "awaiting_approval"]


async def test_yes_is_bound_to_the_version_that_was_looked_at_last(
    approved, note, user, monkeypatch
):
    run_it = calling.Caller.invoke

    async def invoke(self, call):
        if '"append"' in call.arguments:
            await unit_of_work(note_update, owner=user, note_id=note.pk, title="X")
        return await run_it(self, call)

    monkeypatch.setattr(calling.Caller, "invoke", invoke)
    await approved(edit("milk", "oat milk"), append("- flour\n"))
    assert await statuses() == ["done", "error"]
    assert await content(note) == TEXT.replace("milk", "oat milk")
