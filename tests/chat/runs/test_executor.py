import asyncio

import pytest
from django.db import OperationalError
from procrastinate.job_context import AbortReason

from chat import events
from chat.exceptions import HandBack, NoProviderError, ProviderError
from chat.loop import notices
from chat.loop.folding import fold
from chat.models import Approval, Conversation, Message, Run, ToolCall
from chat.runs import deciding, lifecycle
from chat.runs import executor as executor_module
from chat.testing import ScriptedProvider, calls, fails, says
from chat.types import Fault, TextDelta, ToolMessage
from tools.definitions import ToolContext
from tools.registry import registry
from tools.registry import tool as make_tool
from tools.threads import unit_of_work

pytestmark = pytest.mark.django_db


def names(logged):
    return [item.event.name for item in logged]


async def reloaded(run):
    def load():
        return Run.objects.select_related("conversation", "conversation__leaf").get(id=run.id)

    return await unit_of_work(load)


async def rows(model, **filters):
    return await unit_of_work(lambda: list(model.objects.filter(**filters)))


class Echo:
    """What the tool ``echo`` was called with; it waits while ``gate`` is clear."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str, str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.started = asyncio.Event()


@pytest.fixture
def echo():
    recorded = Echo()
    with registry.temporarily(alone=True):

        @make_tool(effect="write")
        async def echo(context: ToolContext, text: str) -> str:
            """Say it again."""
            recorded.seen.append((context.user_id, context.call_id, text))
            recorded.started.set()
            await recorded.gate.wait()
            return text.upper()

        yield recorded


async def test_executor_answers_and_closes_before_done(stage, start):
    run = await start("hello")
    async with stage(ScriptedProvider(says("Good morning", pieces=3))) as runtime:
        await runtime.carry(run)
        log = await runtime.log(run)

    assert names(log)[0] == "run_started"
    assert names(log)[-1] == "done"
    assert [item.seq for item in log] == list(range(1, len(log) + 1))
    after = await reloaded(run)
    assert (after.status, after.stop_reason, after.attempt) == ("finished", "end_turn", 1)
    assert (after.provider, after.model) == ("scripted", "m")
    leaf = after.conversation.leaf
    assert (leaf.role, leaf.content, leaf.finish_reason) == (
        "assistant",
        "Good morning",
        "end_turn",
    )
    assert leaf.parent_id == run.message_id
    assert leaf.output_tokens and leaf.usage_is == "estimated"


async def test_executor_runs_tools_and_folds_to_the_rows(stage, start, user, echo):
    run = await start("shout")
    provider = ScriptedProvider(
        calls(("echo", {"text": "a"}), ("echo", {"text": "b"}), text="Let me."), says("Done.")
    )
    async with stage(provider) as runtime:
        await runtime.carry(run)
        log = await runtime.log(run)

    call_rows = await rows(ToolCall)
    assert [(c.status, c.result) for c in sorted(call_rows, key=lambda c: c.position)] == [
        ("done", "A"),
        ("done", "B"),
    ]
    assert [seen[0] for seen in echo.seen] == [user.id, user.id]
    messages = sorted(await rows(Message, run=run), key=lambda m: m.created)
    assert [m.content for m in messages] == ["Let me.", "Done."]
    assert [m.iteration for m in messages] == [1, 2]
    folded = fold([item.event for item in log])
    assert [m.text for m in folded.messages] == ["Let me.", "Done."]
    assert folded.stop_reason == "end_turn"
    sent = provider.requests[1].messages
    assert [m.content for m in sent if isinstance(m, ToolMessage)] == ["A", "B"]


async def test_executor_commits_a_call_as_running_before_the_tool_runs(stage, start, echo):
    run = await start("shout")
    echo.gate.clear()
    async with stage(ScriptedProvider(calls(("echo", {"text": "a"})), says("ok"))) as runtime:
        carrying = asyncio.create_task(runtime.carry(run))
        await asyncio.wait_for(echo.started.wait(), 5)
        (row,) = await rows(ToolCall)
        echo.gate.set()
        await carrying

    assert row.status == "running"
    assert row.started is not None


async def test_executor_does_not_repeat_a_call_that_was_running_when_its_worker_died(
    stage, start, echo
):
    run = await start("shout")
    echo.gate.clear()
    async with stage(ScriptedProvider(calls(("echo", {"text": "a"})), says("ok"))) as runtime:
        lost = asyncio.create_task(runtime.carry(run))
        await asyncio.wait_for(echo.started.wait(), 5)
        async with stage(ScriptedProvider(says("It may have happened."))) as successor:
            await successor.carry(run)
            log = await successor.log(run)
        echo.gate.set()
        await lost

    assert len(echo.seen) == 1
    (row,) = await rows(ToolCall)
    assert row.status == "unknown"
    after = await reloaded(run)
    assert (after.stop_reason, after.attempt) == ("end_turn", 2)
    assert [item.event.name for item in log].count("done") == 1
    assert log[-1].attempt == 2


async def test_executor_stops_on_the_persons_wish_and_closes_the_upstream(stage, start):
    run = await start("tell me")
    never = asyncio.Event()
    provider = ScriptedProvider([TextDelta("Once upon "), TextDelta("a time"), never])
    async with stage(provider) as runtime:
        carrying = asyncio.create_task(
            runtime.carry(run, abort_reason=lambda: AbortReason.USER_REQUEST)
        )
        await asyncio.wait_for(provider.opened.wait(), 5)
        while True:
            log = await runtime.log(run)
            if "text_delta" in names(log):
                break
        carrying.cancel()
        await carrying
        log = await runtime.log(run)

    assert provider.closed.is_set()
    after = await reloaded(run)
    assert (after.status, after.stop_reason) == ("finished", "stopped")
    (message,) = await rows(Message, run=run)
    assert message.stopped
    texts = [i.event.text for i in log if isinstance(i.event, events.TextDelta)]
    assert message.content == "".join(texts)
    assert names(log)[-1] == "done"


async def test_executor_stops_also_where_the_wish_comes_while_it_begins(stage, start):
    run = await start("tell me")
    provider = ScriptedProvider(says("Never said."))
    async with stage(provider) as runtime:
        carrying = asyncio.create_task(
            runtime.carry(run, abort_reason=lambda: AbortReason.USER_REQUEST)
        )
        await asyncio.sleep(0)  # it has asked for the run, and has not been answered
        carrying.cancel()
        await carrying

    assert provider.requests == []
    after = await reloaded(run)
    assert (after.status, after.stop_reason) == ("finished", "stopped")


async def test_executor_hands_back_also_where_the_process_goes_down_while_it_begins(stage, start):
    run = await start("tell me")
    async with stage(ScriptedProvider(says("Never said."))) as runtime:
        carrying = asyncio.create_task(
            runtime.carry(run, abort_reason=lambda: AbortReason.SHUTDOWN)
        )
        await asyncio.sleep(0)
        carrying.cancel()
        with pytest.raises(HandBack):
            await carrying

    assert (await reloaded(run)).status == "running"


async def test_executor_stop_in_a_tool_leaves_a_valid_history(stage, start, echo):
    run = await start("shout")
    echo.gate.clear()
    provider = ScriptedProvider(calls(("echo", {"text": "a"}), ("echo", {"text": "b"})))
    async with stage(provider) as runtime:
        carrying = asyncio.create_task(
            runtime.carry(run, abort_reason=lambda: AbortReason.USER_REQUEST)
        )
        await asyncio.wait_for(echo.started.wait(), 5)
        carrying.cancel()
        await carrying
        log = await runtime.log(run)

    statuses = {c.position: c.status for c in await rows(ToolCall)}
    assert statuses == {0: "unknown", 1: "skipped"}
    assert names(log).count("tool_result") == 2
    again = await start("go on", conversation_id=run.conversation_id)
    follow_up = ScriptedProvider(says("ok"))
    async with stage(follow_up) as runtime:
        await runtime.carry(again)
    roles = [type(m).__name__ for m in follow_up.requests[0].messages]
    assert roles == ["UserMessage", "AssistantMessage", "ToolMessage", "ToolMessage", "UserMessage"]


async def test_executor_hands_back_when_the_process_goes_down(stage, start):
    run = await start("tell me")
    provider = ScriptedProvider([TextDelta("Once upon a time"), asyncio.Event()])
    async with stage(provider) as runtime:
        carrying = asyncio.create_task(
            runtime.carry(run, abort_reason=lambda: AbortReason.SHUTDOWN)
        )
        await asyncio.wait_for(provider.opened.wait(), 5)
        while "text_delta" not in names(await runtime.log(run)):
            pass
        carrying.cancel()
        with pytest.raises(HandBack):
            await carrying

    (draft,) = await rows(Message, run=run)
    assert (draft.content, draft.finish_reason, draft.stopped) == ("Once upon a time", "", False)
    assert (await reloaded(run)).status == "running"
    async with stage(ScriptedProvider(says("A new start."))) as runtime:
        await runtime.carry(run)
        log = await runtime.log(run)
    (message,) = await rows(Message, run=run)
    assert (message.id, message.content) == (draft.id, "A new start.")
    assert fold([item.event for item in log]).messages[-1].text == "A new start."


@pytest.mark.parametrize(
    ("provider", "code"),
    [
        (NoProviderError("Nothing is configured."), "no_provider"),
        (ScriptedProvider([RuntimeError("a bug")]), "internal"),
        (ScriptedProvider(fails("overloaded", status=529)), "provider_error"),
        (
            ScriptedProvider(
                [ProviderError("No key.", provider="p", fault=Fault("authentication", status=401))]
            ),
            "provider_error",
        ),
    ],
)
async def test_executor_ends_in_one_error_and_done_whatever_fails(stage, start, provider, code):
    run = await start("hello")
    async with stage(provider) as runtime:
        await runtime.carry(run)
        log = await runtime.log(run)

    assert names(log)[-2:] == ["error", "done"]
    assert names(log).count("error") == names(log).count("done") == 1
    assert [i.event.code for i in log if isinstance(i.event, events.ErrorOccurred)] == [code]
    after = await reloaded(run)
    assert (after.status, after.stop_reason, after.error_code) == ("finished", "error", code)
    assert "a bug" not in after.error_message


async def test_executor_keeps_the_text_of_a_provider_that_broke_off(stage, start):
    run = await start("hello")
    async with stage(ScriptedProvider(fails("gone", text="So far"))) as runtime:
        await runtime.carry(run)

    (message,) = await rows(Message, run=run)
    assert (message.content, message.finish_reason) == ("So far", "error")


async def test_executor_does_nothing_for_a_run_that_is_over(stage, start, user):
    run = await start("hello")
    await unit_of_work(lifecycle.run_stop, owner=user, run_id=run.id)
    provider = ScriptedProvider(says("never"))
    async with stage(provider) as runtime:
        await runtime.carry(run)

    assert provider.requests == []


async def test_executor_survives_the_deletion_of_its_conversation(stage, start):
    run = await start("hello")
    held = asyncio.Event()
    provider = ScriptedProvider([TextDelta("a"), held, *says("b")])
    async with stage(provider) as runtime:
        carrying = asyncio.create_task(runtime.carry(run))
        await asyncio.wait_for(provider.opened.wait(), 5)
        await unit_of_work(lambda: Conversation.objects.filter(id=run.conversation_id).delete())
        held.set()
        await carrying

    assert await rows(Run) == []


@pytest.mark.parametrize("moment", ["run_begin", "run_name", "run_close"])
async def test_executor_hands_back_when_the_database_goes_away(stage, start, monkeypatch, moment):
    run = await start()
    service = getattr(lifecycle, moment)
    failures = [OperationalError("the database system is shutting down")]

    def away(**arguments):
        if failures:
            raise failures.pop()
        return service(**arguments)

    monkeypatch.setattr(lifecycle, moment, away)
    async with stage(ScriptedProvider(says("Good morning"))) as runtime:
        with pytest.raises(HandBack):
            await runtime.carry(run)
        await runtime.carry(run)
        log = await runtime.log(run)

    assert names(log).count("done") == 1
    assert (await reloaded(run)).stop_reason == "end_turn"


async def test_call_that_was_cut_off_never_runs_in_a_later_attempt_either(stage, start, user, lamp):
    cut = calls(("lamp_set", {"colour": "red"}), ("lamp_look", ""), finish_reason="max_tokens")
    run = await start()
    async with stage(ScriptedProvider(cut, says("Done."))) as runtime:
        await runtime.carry(run)
        [approval] = await rows(Approval, run=run)
        await unit_of_work(
            deciding.approval_decide, owner=user, approval_id=approval.id, decision="approved"
        )
        await runtime.carry(run)

    ran, was_cut_off = await rows(ToolCall, message__run=run)
    assert (ran.status, was_cut_off.status) == ("done", "error")
    assert was_cut_off.result == notices.TRUNCATED


async def test_executor_ends_in_an_error_when_the_database_fails_for_good(
    stage, start, monkeypatch
):
    def away(**arguments):
        raise OperationalError("canceling statement due to statement timeout")

    monkeypatch.setattr(lifecycle, "run_name", away)
    run = await start()
    async with stage(ScriptedProvider(says("Good morning"))) as runtime:
        for _ in range(executor_module.MOST_ATTEMPTS - 1):
            with pytest.raises(HandBack):
                await runtime.carry(run)
        await runtime.carry(run)

    ended = await reloaded(run)
    assert (ended.status, ended.error_code) == ("finished", "internal")
