"""A run that asks: it pauses, nothing runs, and a person's word carries it on from its rows."""

from datetime import timedelta

import pytest
from django.utils import timezone

from chat import events
from chat.exceptions import ApprovalClosedError, ApprovalInvalidError, ApprovalStaleError
from chat.loop.folding import fold
from chat.models import Approval, Conversation, Run, RunEvent, ToolCall, ToolRule
from chat.runs import deciding, lifecycle, recovery, rules
from chat.testing import ScriptedProvider, calls, says
from chat.types import ToolMessage
from tools.definitions import ToolContext
from tools.exceptions import ToolError
from tools.policy import Policy
from tools.registry import registry
from tools.registry import tool as make_tool
from tools.threads import unit_of_work

pytestmark = pytest.mark.django_db


def red(*more: str):
    return calls(*(("lamp_set", {"colour": colour}) for colour in ("red", *more)))


def names(log):
    return [item.event.name for item in log]


def of(log, kind):
    return [item.event for item in log if isinstance(item.event, kind)]


async def row(model, **filters):
    return await unit_of_work(lambda: model.objects.get(**filters))


async def results():
    def read():
        return list(ToolCall.objects.order_by("position").values_list("status", "result"))

    return await unit_of_work(read)


async def pending():
    def read():
        rows = Approval.objects.select_related("call").order_by("call__position")
        return list(rows.filter(decision=""))

    return await unit_of_work(read)


@pytest.fixture
def decide(user):
    async def take(approval, decision="approved", **options):
        return await unit_of_work(
            deciding.approval_decide,
            owner=user,
            approval_id=approval.id,
            decision=decision,
            **options,
        )

    return take


@pytest.fixture
def paused(stage, start, lamp):
    """Carry a run until it asks: the runtime with its provider, and the run."""

    async def carry(runtime, content="red please", **options):
        run = await start(content, **options)
        await runtime.carry(run)
        return run

    return carry


async def test_run_asks_and_holds_nothing(stage, start, lamp):
    provider = ScriptedProvider(red(), says("Done."))
    run = await start("red please")
    async with stage(provider) as runtime:
        await runtime.carry(run)
        log = await runtime.log(run)

    assert lamp.set == []
    assert (await row(Run, id=run.id)).status == "awaiting_approval"
    [required] = of(log, events.ApprovalRequired)
    assert log[-1].event == required
    assert (required.tool, required.arguments) == ("lamp_set", {"colour": "red"})
    assert required.preview == {"text": "Make it red.", "diff": "-white\n+red"}
    assert required.scopes == ("once", "conversation", "always")
    [approval] = await pending()
    assert (approval.id, approval.call.status) == (required.approval_id, "awaiting_approval")
    assert approval.expires == required.expires_at
    assert approval.expires - approval.requested == timedelta(days=7)
    folded = fold([item.event for item in log])
    assert folded.is_awaiting
    assert folded.messages[-1].calls[0].status == "awaiting_approval"


async def test_allowed_calls_before_the_first_asked_one_run_and_all_cards_come_at_once(
    stage, start, lamp
):
    script = calls(
        ("lamp_look", {}),
        ("lamp_set", {"colour": "red"}),
        ("lamp_look", {}),
        ("lamp_set", {"colour": "blue"}),
    )
    run = await start("colours")
    async with stage(ScriptedProvider(script, says("ok"))) as runtime:
        await runtime.carry(run)
        log = await runtime.log(run)

    assert [status for status, _ in await results()] == [
        "done",
        "awaiting_approval",
        "pending",
        "awaiting_approval",
    ]
    assert names(log)[-2:] == ["approval_required"] * 2


async def test_approved_call_runs_once_in_a_new_attempt_and_the_log_goes_on(
    stage, paused, decide, lamp
):
    provider = ScriptedProvider(red(), says("Done."))
    async with stage(provider) as runtime:
        run = await paused(runtime)
        [approval] = await pending()
        await decide(approval)
        queued = await row(Run, id=run.id)
        assert (queued.status, queued.job_id != run.job_id) == ("queued", True)
    async with stage(provider) as another:  # as after a restart, or in another process
        await another.carry(run)
        await another.carry(run)
        log = await another.log(run)

    assert lamp.set == ["red"]
    assert await results() == [("done", "red at 1")]
    assert [item.event.approval_id for item in log if item.event.name == "approval_resolved"] == [
        approval.id
    ]
    starts = [item.event for item in log if item.event.name == "run_started"]
    assert [event.interrupted for event in starts] == [False, False]
    for attempt in (1, 2):
        seqs = [item.seq for item in log if item.attempt == attempt]
        assert seqs == list(range(1, len(seqs) + 1))
    ended = await row(Run, id=run.id)
    assert (ended.status, ended.stop_reason, ended.attempt) == ("finished", "end_turn", 2)
    [resolved] = of(log, events.ApprovalResolved)
    assert (resolved.decision, resolved.by) == ("approved", "ada")
    assert [m.text for m in fold([i.event for i in log]).messages] == ["", "Done."]


async def test_same_word_again_is_taken_and_another_is_refused(stage, paused, decide, lamp):
    async with stage(ScriptedProvider(red(), says("Done."))) as runtime:
        run = await paused(runtime)
        [approval] = await pending()
        first = await decide(approval)
        again = await decide(approval)
        with pytest.raises(ApprovalClosedError, match="approved"):
            await decide(approval, "denied")
        log = await runtime.log(run)

    assert again.decided == first.decided
    assert names(log).count("approval_resolved") == 1


async def test_deny_ends_the_run_and_what_came_before_still_runs(stage, paused, decide, lamp):
    provider = ScriptedProvider(red("green", "blue"), says("never"))
    async with stage(provider) as runtime:
        run = await paused(runtime)
        first, second, third = await pending()
        await decide(second, "denied", reason="too green")
        assert (await row(Run, id=run.id)).status == "awaiting_approval"
        assert (await row(Approval, id=third.id)).decision == "expired"
        await decide(first)
        await runtime.carry(run)
        log = await runtime.log(run)

    assert lamp.set == ["red"]
    assert await results() == [
        ("done", "red at 1"),
        ("denied", "Denied by the person: too green."),
        ("skipped", "Not run: an earlier call was denied by the person."),
    ]
    ended = await row(Run, id=run.id)
    assert (ended.status, ended.stop_reason) == ("finished", "denied")
    assert names(log)[-1] == "done"
    assert len(provider.requests) == 1


async def test_deny_lets_the_model_go_on_where_the_person_says_so(stage, paused, decide, lamp):
    provider = ScriptedProvider(red("blue"), says("Blue, then."))
    async with stage(provider) as runtime:
        run = await paused(runtime)
        first, second = await pending()
        await decide(first, "denied", reason="not red", go_on=True)
        await decide(second)
        await runtime.carry(run)

    assert lamp.set == ["blue"]
    told = [m.content for m in provider.requests[1].messages if isinstance(m, ToolMessage)]
    assert told[0].startswith("Denied by the person: not red.\n")
    assert (await row(Run, id=run.id)).stop_reason == "end_turn"


async def test_edited_arguments_are_what_runs_and_the_model_is_told(stage, paused, decide, lamp):
    provider = ScriptedProvider(red(), says("Pink."))
    async with stage(provider) as runtime:
        run = await paused(runtime)
        [approval] = await pending()
        with pytest.raises(ApprovalInvalidError) as caught:
            await decide(approval, arguments={"color": "pink"})
        assert set(caught.value.fields) == {"arguments.color", "arguments.colour"}
        await decide(approval, arguments={"colour": "pink"})
        with pytest.raises(ApprovalClosedError):
            await decide(approval)
        await runtime.carry(run)
        log = await runtime.log(run)

    assert lamp.set == ["pink"]
    [(status, result)] = await results()
    assert status == "done"
    assert 'it ran with {"colour":"pink"}' in result
    told = [m.content for m in provider.requests[1].messages if isinstance(m, ToolMessage)]
    assert told == [result]
    assert of(log, events.ApprovalResolved)[0].arguments == {"colour": "pink"}


async def test_stale_target_is_shown_anew_and_never_applied_blindly(stage, paused, decide, lamp):
    async with stage(ScriptedProvider(red(), says("Done."))) as runtime:
        run = await paused(runtime)
        [approval] = await pending()
        lamp.version = 7
        with pytest.raises(ApprovalStaleError):
            await decide(approval)
        assert (await row(Run, id=run.id)).status == "awaiting_approval"
        assert (await row(Approval, id=approval.id)).version == "7"
        await decide(approval)
        await runtime.carry(run)
        log = await runtime.log(run)

    assert await results() == [("done", "red at 7")]
    assert names(log).count("approval_required") == 2


async def test_target_that_changes_after_the_word_is_asked_for_again(stage, paused, decide, lamp):
    async with stage(ScriptedProvider(red(), says("Done."))) as runtime:
        run = await paused(runtime)
        [approval] = await pending()
        await decide(approval)
        lamp.version = 3
        await runtime.carry(run)
        assert (await row(Run, id=run.id)).status == "awaiting_approval"
        assert lamp.set == []
        [again] = await pending()
        assert (again.version, again.decided_by_id) == ("3", None)
        with pytest.raises(Approval.DoesNotExist):
            await decide(approval)
        await decide(again)
        await runtime.carry(run)

    assert await results() == [("done", "red at 3")]


@pytest.mark.parametrize("fault", [ToolError("there is no lamp"), RuntimeError("a bug")])
async def test_what_cannot_be_shown_is_an_error_result_and_never_runs(stage, paused, lamp, fault):
    lamp.fault = fault
    provider = ScriptedProvider(red(), says("No lamp."))
    async with stage(provider) as runtime:
        run = await paused(runtime)
        assert (await row(Run, id=run.id)).status == "queued"
        await runtime.carry(run)
        log = await runtime.log(run)

    assert lamp.set == []
    [(status, result)] = await results()
    assert status == "error"
    assert "a bug" not in result
    assert "approval_required" not in names(log)
    assert (await row(Run, id=run.id)).stop_reason == "end_turn"


async def test_target_that_is_gone_cannot_be_approved_but_denied(stage, paused, decide, lamp):
    async with stage(ScriptedProvider(red(), says("Done."))) as runtime:
        run = await paused(runtime)
        [approval] = await pending()
        lamp.fault = ToolError("there is no lamp")
        for _ in range(2):
            with pytest.raises(ApprovalStaleError):
                await decide(approval)
        assert "no lamp" in (await row(Approval, id=approval.id)).preview["text"]
        assert names(await runtime.log(run)).count("approval_required") == 2
        await decide(approval, "denied")
        await runtime.carry(run)

    assert lamp.set == []
    assert (await row(Run, id=run.id)).stop_reason == "denied"


async def test_fault_in_the_policy_never_runs_the_tool(stage, paused, lamp, monkeypatch):
    def broken(self, name, effect):
        if name == "lamp_set":
            raise RuntimeError("a bug")
        return real(self, name, effect)

    real = Policy.decide
    provider = ScriptedProvider(red(), says("Well."))
    async with stage(provider) as runtime:
        with monkeypatch.context() as patch:
            patch.setattr("tools.registry.Registry.definitions", lambda self, policy=None: ())
            patch.setattr(Policy, "decide", broken)
            run = await paused(runtime)

    assert lamp.set == []
    assert [status for status, _ in await results()] == ["error"]
    assert (await row(Run, id=run.id)).stop_reason == "end_turn"


async def test_stop_while_awaiting_closes_everything(stage, paused, decide, lamp, user):
    async with stage(ScriptedProvider(red("blue"), says("never"))) as runtime:
        run = await paused(runtime)
        approval, _ = await pending()
        await unit_of_work(lifecycle.run_stop, owner=user, run_id=run.id)
        with pytest.raises(ApprovalClosedError, match="no longer awaited"):
            await decide(approval)
        await runtime.carry(run)
        log = await runtime.log(run)

    assert lamp.set == []
    assert [status for status, _ in await results()] == ["skipped"] * 2
    assert names(log)[-5:] == ["approval_resolved"] * 2 + ["tool_result"] * 2 + ["done"]
    ended = await row(Run, id=run.id)
    assert (ended.status, ended.stop_reason) == ("finished", "stopped")


async def test_new_message_stops_the_run_that_awaits_and_starts_its_own(stage, start, paused, lamp):
    provider = ScriptedProvider(red(), says("Never mind."))
    async with stage(provider) as runtime:
        run = await paused(runtime)
        again = await start("forget it", conversation_id=run.conversation_id)
        await runtime.carry(again)

    assert (await row(Run, id=run.id)).stop_reason == "stopped"
    assert (await row(Run, id=again.id)).stop_reason == "end_turn"
    assert await pending() == []
    told = [m.content for m in provider.requests[1].messages if isinstance(m, ToolMessage)]
    assert told == ["Not run: the person stopped the answer."]


async def test_approval_that_runs_out_ends_the_run(stage, paused, decide, lamp):
    async with stage(ScriptedProvider(red(), says("never"))) as runtime:
        run = await paused(runtime)
        [approval] = await pending()
        await unit_of_work(recovery.late_expire)
        assert (await row(Run, id=run.id)).status == "awaiting_approval"
        await unit_of_work(
            lambda: Approval.objects.update(expires=timezone.now() - timedelta(seconds=1))
        )
        await unit_of_work(recovery.late_expire)

    ended = await row(Run, id=run.id)
    assert (ended.status, ended.stop_reason) == ("finished", "deadline")
    assert (await row(Approval, id=approval.id)).decision == "expired"
    assert await results() == [("skipped", "Not run: nobody approved this call in time.")]


async def test_late_word_finds_the_approval_run_out_before_the_sweep(stage, paused, decide, lamp):
    async with stage(ScriptedProvider(red(), says("never"))) as runtime:
        run = await paused(runtime)
        [approval] = await pending()
        await unit_of_work(lambda: Approval.objects.update(expires=timezone.now()))
        with pytest.raises(ApprovalClosedError):
            await decide(approval)

    assert (await row(Run, id=run.id)).status == "finished"
    assert lamp.set == []


async def test_deleting_the_conversation_deletes_its_approvals(stage, paused, user, lamp):
    from chat.transcript.conversations import conversation_delete

    async with stage(ScriptedProvider(red())) as runtime:
        run = await paused(runtime)
        await unit_of_work(conversation_delete, owner=user, conversation_id=run.conversation_id)

    def left():
        return Approval.objects.count(), RunEvent.objects.count(), Conversation.objects.count()

    assert await unit_of_work(left) == (0, 0, 0)


@pytest.mark.parametrize("scope", ["conversation", "always"])
async def test_rule_ends_the_asking_as_far_as_it_reaches(
    stage, start, paused, decide, lamp, scope, user
):
    await unit_of_work(rules.mode_set, owner=user, mode="careful")
    dim = calls(("lamp_dim", {"colour": "red"}))
    provider = ScriptedProvider(*[dim, says("ok")] * 3)
    async with stage(provider) as runtime:
        run = await paused(runtime)
        [approval] = await pending()
        await decide(approval, scope=scope)
        await runtime.carry(run)
        here = await start("again", conversation_id=run.conversation_id)
        await runtime.carry(here)
        elsewhere = await start("and here")
        await runtime.carry(elsewhere)

    assert (await row(Run, id=here.id)).stop_reason == "end_turn"
    asked = (await row(Run, id=elsewhere.id)).status == "awaiting_approval"
    assert asked == (scope == "conversation")
    rule = await row(ToolRule)
    assert (rule.conversation_id == run.conversation_id) == (scope == "conversation")


async def test_rule_says_nothing_where_the_operator_is_careful(
    stage, start, paused, decide, lamp, user, settings
):
    settings.NOTEWIRE_APPROVAL_MODE = "careful"
    tool = registry.get("lamp_dim")
    assert tool is not None
    await unit_of_work(rules.rule_allow, owner=user, tool=tool)
    async with stage(ScriptedProvider(calls(("lamp_dim", {"colour": "red"})), says("ok"))) as run:
        await paused(run)
        [approval] = await pending()
    assert approval.preview["scopes"] == ["once"]


async def test_rule_says_nothing_once_the_tool_is_another(stage, paused, decide, lamp, user):
    await unit_of_work(rules.mode_set, owner=user, mode="careful")
    provider = ScriptedProvider(*[calls(("lamp_dim", {"colour": "red"})), says("ok")] * 2)
    async with stage(provider) as runtime:
        run = await paused(runtime)
        [approval] = await pending()
        await decide(approval, scope="always")
        await runtime.carry(run)
        await unit_of_work(lambda: ToolRule.objects.update(digest="another"))
        again = await paused(runtime)

    assert (await row(Run, id=again.id)).status == "awaiting_approval"


async def test_outside_text_makes_the_next_change_ask_again_whatever_the_rule(
    stage, start, decide, lamp, user
):
    provider = ScriptedProvider(red("blue"), says("ok"))
    tool = registry.get("lamp_set")
    assert tool is not None
    await unit_of_work(rules.rule_allow, owner=user, tool=tool)
    async with stage(provider) as runtime:
        run = await start("red, then blue")
        await runtime.carry(run)

    assert lamp.set == ["red"]
    [approval] = await pending()
    assert "outside" in approval.preview["because"]
    assert approval.preview["scopes"] == ["once"]
    with pytest.raises(ApprovalInvalidError):
        await decide(approval, scope="always")


async def test_nobody_is_asked_in_a_conversation_without_a_person(stage, start, lamp):
    run = await start("red")
    await unit_of_work(lambda: Conversation.objects.update(ephemeral=True))
    async with stage(ScriptedProvider(red(), says("I may not."))) as runtime:
        await runtime.carry(run)

    assert lamp.set == []
    [(status, result)] = await results()
    assert status == "skipped"
    assert "NOTEWIRE_TOOL_POLICY=lamp_set=allow" in result


async def test_careful_mode_of_the_person_or_the_operator_asks_about_every_change(
    stage, start, user, settings
):
    with registry.temporarily(alone=True):

        @make_tool(effect="write")
        def keep(context: ToolContext) -> str:
            """Keep."""
            return "kept"

        assert rules.mode_of(owner=user) == "balanced"
        await unit_of_work(rules.mode_set, owner=user, mode="careful")
        run = await start("keep it")
        async with stage(ScriptedProvider(calls(("keep", {})), says("ok"))) as runtime:
            await runtime.carry(run)
    assert (await row(Run, id=run.id)).status == "awaiting_approval"
    await unit_of_work(rules.mode_set, owner=user, mode="balanced")
    settings.NOTEWIRE_APPROVAL_MODE = "careful"
    assert rules.mode_of(owner=user) == "careful"


async def test_stranger_decides_nothing(stage, paused, lamp, other_user):
    async with stage(ScriptedProvider(red())) as runtime:
        await paused(runtime)
        [approval] = await pending()
        with pytest.raises(Approval.DoesNotExist):
            await unit_of_work(
                deciding.approval_decide,
                owner=other_user,
                approval_id=approval.id,
                decision="approved",
            )


async def test_exactly_the_shown_arguments_run(stage, start, decide, lamp):
    script = calls(("lamp_set", '{"colour": "red", "colour": "blue"}'))
    run = await start("red")
    async with stage(ScriptedProvider(script, says("ok"))) as runtime:
        await runtime.carry(run)

    assert lamp.set == []
    assert await pending() == []
    [(status, result)] = await results()
    assert (status, "twice" in result) == ("error", True)
