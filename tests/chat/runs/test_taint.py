"""Origin follows text: what was read from outside makes changes asked for, and marks them."""

import pytest

from chat.exceptions import ApprovalStaleError
from chat.models import Approval, Run, ToolCall
from chat.runs import deciding
from chat.testing import ScriptedProvider, calls, says
from notes import services
from notes.authors import Author
from notes.models import Note
from tests.notes.writing import note_create
from tools.definitions import ToolContext, ToolOutput
from tools.registry import registry, tool
from tools.threads import unit_of_work

pytestmark = pytest.mark.django_db

WRITE = calls(("note_create", {"title": "Written"}))


@pytest.fixture
def imported(user, units):
    author = Author.person(user, "import")
    return services.note_create(owner=user, author=author, title="Imported", content="words")


def carried(stage, run, *script):
    async def carry():
        async with stage(ScriptedProvider(*script, says("Done."))) as runtime:
            await runtime.carry(run)
        return await unit_of_work(lambda: Run.objects.get(id=run.id).status)

    return carry()


def reading(note):
    return calls(("note_read", {"note_id": str(note.pk)}))


async def test_change_is_asked_for_after_an_imported_note_was_read(stage, start, user, imported):
    run = await start("Read it, then write.")

    assert await carried(stage, run, reading(imported), WRITE) == "awaiting_approval"

    waiting = await unit_of_work(lambda: Approval.objects.get(run=run))
    assert "outside" in waiting.preview["because"]
    read = await unit_of_work(lambda: ToolCall.objects.get(name="note_read"))
    assert read.from_outside


async def test_change_is_asked_for_in_a_later_run_of_the_conversation_too(
    stage, start, user, imported
):
    first = await start("Read it.")
    assert await carried(stage, first, reading(imported)) == "finished"
    later = await start("Write.", conversation_id=first.conversation_id)

    assert await carried(stage, later, WRITE) == "awaiting_approval"


async def test_change_runs_unasked_where_only_own_notes_were_read(stage, start, user):
    own = await unit_of_work(note_create, owner=user, title="Own")
    run = await start("Read it, then write.")

    assert await carried(stage, run, reading(own), WRITE) == "finished"

    written = await unit_of_work(lambda: Note.objects.get(title="Written"))
    assert not written.from_outside


async def test_note_that_was_written_after_text_from_outside_taints_whoever_reads_it(
    stage, start, user
):
    with registry.temporarily():

        @tool(effect="read")
        def fetch(context: ToolContext) -> ToolOutput:
            """Bring something in."""
            return ToolOutput("words", from_outside=True)

        first = await start("Fetch it and write it down.")
        assert await carried(stage, first, calls(("fetch", {})), WRITE) == "awaiting_approval"
        waiting = await unit_of_work(lambda: Approval.objects.get(run=first))
        await unit_of_work(
            deciding.approval_decide, owner=user, approval_id=waiting.id, decision="approved"
        )
        assert await carried(stage, first) == "finished"
    written = await unit_of_work(lambda: Note.objects.get(title="Written"))
    assert written.from_outside

    other = await start("Read it, then write.")

    assert await carried(stage, other, reading(written), WRITE) == "awaiting_approval"


async def test_card_that_is_shown_anew_still_says_what_came_from_outside(stage, start, user, lamp):
    dim = calls(("lamp_dim", {"colour": "red"}))
    run = await start("Fade, then dim.")
    async with stage(ScriptedProvider(calls(("lamp_fade", {"seconds": 1})), dim)) as runtime:
        await runtime.carry(run)
        await unit_of_work(decide, user, run)
        await runtime.carry(run)
    lamp.version = 7

    with pytest.raises(ApprovalStaleError):
        await unit_of_work(decide, user, run)

    anew = await unit_of_work(lambda: Approval.objects.get(run=run, decision=""))
    assert anew.version == "7"
    assert "outside" in anew.preview["because"]
    assert anew.preview["scopes"] == ["once"]


def decide(user, run) -> None:
    waiting = Approval.objects.get(run=run, decision="")
    deciding.approval_decide(owner=user, approval_id=waiting.id, decision="approved")
