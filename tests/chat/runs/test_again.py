import pytest

from chat.exceptions import ConversationBusyError, RunSupersededError
from chat.models import Conversation, Message, Run
from chat.runs import lifecycle
from chat.testing import ScriptedProvider, says
from chat.transcript.selectors import conversation_messages
from chat.types import AssistantMessage, UserMessage
from tools.threads import unit_of_work

pytestmark = pytest.mark.django_db


async def shown(user, run):
    def load():
        rows = conversation_messages(owner=user, conversation_id=run.conversation_id)
        return [message.content for message in rows]

    return await unit_of_work(load)


async def test_retry_writes_a_sibling_and_shows_it(stage, start, user):
    run = await start("hello")
    async with stage(ScriptedProvider(says("First."))) as runtime:
        await runtime.carry(run)
    again = await unit_of_work(lifecycle.run_retry, owner=user, run_id=run.id)
    provider = ScriptedProvider(says("Second."))
    async with stage(provider) as runtime:
        await runtime.carry(again)

    assert provider.requests[0].messages == (UserMessage("hello"),)
    assert await shown(user, run) == ["hello", "Second."]

    def answers():
        rows = Message.objects.filter(role="assistant").order_by("created")
        return [(m.content, m.parent_id) for m in rows]

    first, second = await unit_of_work(answers)
    assert first == ("First.", run.message_id)
    assert second == ("Second.", run.message_id)


async def test_continue_goes_on_from_the_answer_with_fresh_iterations(stage, start, user):
    run = await start("tell me")
    async with stage(ScriptedProvider(says("Once upon", finish_reason="max_tokens"))) as runtime:
        await runtime.carry(run)
    more = await unit_of_work(lifecycle.run_continue, owner=user, run_id=run.id)
    provider = ScriptedProvider(says("a time."))
    async with stage(provider) as runtime:
        await runtime.carry(more)

    assert more.message_id == run.message_id
    history = provider.requests[0].messages
    assert history[0] == UserMessage("tell me")
    assert isinstance(history[1], AssistantMessage)
    assert history[1].text == "Once upon"
    assert await shown(user, run) == ["tell me", "Once upon", "a time."]


def test_again_is_refused_where_later_messages_would_be_hidden(user):
    first = lifecycle.run_start(owner=user, content="one")
    lifecycle.run_close(run_id=first.id, reason="stopped")
    second = lifecycle.run_start(owner=user, content="two", conversation_id=first.conversation_id)
    lifecycle.run_close(run_id=second.id, reason="stopped")
    for again in (lifecycle.run_retry, lifecycle.run_continue):
        with pytest.raises(RunSupersededError):
            again(owner=user, run_id=first.id)
        lifecycle.run_close(run_id=again(owner=user, run_id=second.id).id, reason="stopped")
    assert Conversation.objects.get().leaf_id == second.message_id


@pytest.mark.parametrize("again", [lifecycle.run_retry, lifecycle.run_continue])
async def test_continue_is_refused_where_it_would_hide_the_answer_that_is_shown(
    stage, start, user, again
):
    run = await start("hello")
    async with stage(ScriptedProvider(says("First."), says("Second."))) as runtime:
        await runtime.carry(run)
        later = await unit_of_work(again, owner=user, run_id=run.id)
        await runtime.carry(later)
    told = await shown(user, run)
    with pytest.raises(RunSupersededError, match="Another answer"):
        await unit_of_work(lifecycle.run_continue, owner=user, run_id=run.id)

    assert await shown(user, run) == told
    await unit_of_work(lifecycle.run_continue, owner=user, run_id=later.id)


def test_again_is_refused_while_a_decision_is_awaited(user):
    run = lifecycle.run_start(owner=user, content="hello")
    Run.objects.update(status="awaiting_approval")
    for again in (lifecycle.run_retry, lifecycle.run_continue):
        with pytest.raises(ConversationBusyError, match="awaits your decision"):
            again(owner=user, run_id=run.id)


def test_again_is_refused_while_the_run_goes_on_and_to_strangers(user, other_user):
    run = lifecycle.run_start(owner=user, content="hello")
    for again in (lifecycle.run_retry, lifecycle.run_continue):
        with pytest.raises(ConversationBusyError, match="still answering"):
            again(owner=user, run_id=run.id)
        with pytest.raises(Run.DoesNotExist):
            again(owner=other_user, run_id=run.id)
    assert Conversation.objects.get().leaf_id == run.message_id
