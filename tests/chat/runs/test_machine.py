"""Runs under whatever may happen to them, in any order: after every step the invariants hold.

A machine plays all sides: people who write, stop, decide, branch and delete, a model that streams
and asks for tools, processes that carry a run and are killed, hand it back or are taken for dead
while they go on, sweeps, and listeners that come and go. It keeps its own account of what was
said, and compares. The suite plays the same few games each time; others, say 1,000::

    MACHINE_EXAMPLES=1000 pytest tests/chat/runs/test_machine.py
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from procrastinate.job_context import AbortReason

from chat.api import following
from chat.exceptions import (
    ApprovalClosedError,
    ApprovalStaleError,
    ConversationBusyError,
    RunSupersededError,
)
from chat.loop.repair import repair
from chat.loop.window import fit, size
from chat.models import (
    ACTIVE_STATUSES,
    Approval,
    Conversation,
    Message,
    Run,
    RunEvent,
    ToolCall,
)
from chat.runs import approvals, deciding, event_log, executor, flusher, lifecycle, recovery
from chat.transcript import conversations
from chat.transcript.history import OPEN_STATUSES, branch_rows, history_messages
from chat.types import Fault, RequestedCall, TextDelta, ThinkingDelta
from tests.chat.loop.rules import assert_valid
from tests.chat.runs.conftest import Stage
from tests.chat.runs.invariants import assert_sound
from tests.chat.runs.processes import (
    PATIENCE_SECONDS,
    Attempt,
    Ear,
    process,
    unit_of_flusher,
    unit_of_process,
)
from tools.definitions import Preview, ToolContext
from tools.registry import registry
from tools.registry import tool as make_tool

pytestmark = pytest.mark.django_db

#: How many other games are played than the ones of the suite.
EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "0"))
FEW = 12
HISTORY_BYTES = 6_000
DAY = timedelta(days=1)
LATE = approvals._late

which = st.integers(0, 3)
pieces = st.sampled_from(["milk ", "and\n\n", "käse\u2028", "w" * 2_500])
requested = st.builds(
    RequestedCall,
    id=st.sampled_from([None, "", "call_1"]),
    name=st.sampled_from(["look", "paint", "paint", "paint", "work", "work", "nope", ""]),
    arguments=st.sampled_from(["{}", '{"value": 1}', '{"value": 2}', '{"value": 1', "null"]),
)
#: What a person may say of a call.
WORDS: list[dict[str, Any]] = [
    {"decision": "approved"},
    {"decision": "approved", "arguments": {"value": 7}},
    {"decision": "denied", "reason": "no"},
    {"decision": "denied", "go_on": True},
]
decisions = st.sampled_from([WORDS[0], *WORDS])


Key: TypeAlias = tuple[UUID | None, str]


class World:
    """What tools do to it, and what may be done: a wall of a colour, and work that takes long."""

    def __init__(self) -> None:
        self.version = 1
        #: Calls that ran; one is known by its conversation and its id.
        self.done: list[Key] = []
        #: Of each call, the last word that was taken: the decision, the value, what was seen.
        self.words: dict[Key, tuple[str, Any, int]] = {}
        self.asked: set[Key] = set()
        self.faults: list[str] = []

    def do(self, context: ToolContext, name: str, value: Any) -> None:
        call = (context.conversation_id, context.call_id)
        self.done.append(call)
        if name == "paint" or call in self.asked:
            word = self.words.get(call)
            seen = self.version if name == "paint" else word and word[2]
            if word != ("approved", value, seen):
                self.faults.append(f"{name} {value} ran at {self.version}, and was told {word}")


@pytest.fixture
def world():
    state: list[World] = [World()]

    def preview(context: ToolContext, value: int = 0) -> Preview:
        return Preview(f"Paint it {value}.", f"+{value}", str(state[0].version))

    with registry.temporarily(alone=True):

        @make_tool(effect="read")
        def look(context: ToolContext, value: int = 0) -> str:
            """Look."""
            return "z" * 2_000 * value

        @make_tool(effect="external", preview=preview)
        def paint(context: ToolContext, value: int = 0) -> str:
            """Paint the wall."""
            state[0].do(context, "paint", value)
            state[0].version += 1
            return f"painted {value}"

        @make_tool(effect="write", deadline=600.0)
        async def work(context: ToolContext, value: int = 0) -> str:
            """Work for long."""
            state[0].do(context, "work", value)
            await process.get().work_in_tool()
            return "worked"

        yield state


class Machine(RuleBasedStateMachine):
    def __init__(self, user, worlds: list[World], patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.user, self.patch = user, patch
        self.world = worlds[0] = World()
        self.runner = asyncio.Runner()
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()
        #: What people wrote, by conversation.
        self.written: dict[UUID, list[str]] = {}
        self.deleted: set[UUID] = set()
        self.active: list[Run] = []
        #: Who carries a run, as far as the database knows, and who goes on all the same.
        self.carried: dict[UUID, Attempt] = {}
        self.zombies: list[Attempt] = []
        self.attempts: list[Attempt] = []
        self.cards: list[UUID] = []
        self.ears: list[Ear] = []
        self.elsewhere = Stage(None)

    # Who is where.

    @property
    def living(self) -> list[Attempt]:
        return [*self.carried.values(), *self.zombies]

    @property
    def streaming(self) -> list[Attempt]:
        return [each for each in self.living if not each.in_tool]

    @property
    def working(self) -> list[Attempt]:
        return [each for each in self.living if each.in_tool]

    @property
    def waiting(self) -> list[Run]:
        """Runs that somebody may begin to carry."""
        return [r for r in self.active if r.status != "awaiting_approval"]

    @property
    def uncarried(self) -> list[Run]:
        return [r for r in self.waiting if r.id not in self.carried]

    def go(self, work: Any) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await work

        return self.runner.run(bounded())

    # The person.

    @rule(
        what=st.sampled_from(["write", "write", "branch"]),
        at=which,
        content=pieces,
        keep=st.booleans(),
    )
    def speak(self, what: str, at: int, content: str, keep: bool) -> None:
        """Someone wants an answer, and mostly somebody carries the run at once."""
        if at >= len(self.written):
            self.begin_conversation(content)
        elif what == "write":
            self.write(at, content)
        else:
            self.branch(at, keep)
        self._look()
        if self.uncarried and at:
            self.carry(at, None)

    @precondition(lambda self: self.written)
    @rule(
        what=st.sampled_from(["stop", "told", "late", "delete", "target", "sweep"]),
        at=which,
        is_more=st.booleans(),
    )
    def interfere(self, what: str, at: int, is_more: bool) -> None:
        """People, and what happens beside a run."""
        if what == "stop" and self.active:
            self.stop(at, is_told=is_more)
        elif what == "told" and any(each.is_told_to_stop for each in self.living):
            self.tell_to_stop(at)
        elif what == "late" and self.cards:
            self.decide_late(at + 4 * is_more, WORDS[at])
        elif what == "delete" and len(self.written) > 1:
            self.delete(at)
        elif what == "sweep":
            self.sweep(is_late=is_more)
        else:
            self.world.version += 1

    @precondition(lambda self: self.waiting)
    @rule(
        what=st.sampled_from(["crash", "crash", "shut down", "taken over", "job lost", "fault"]),
        at=which,
        words=st.lists(pieces, max_size=2),
    )
    def break_down(self, what: str, at: int, words: list[str]) -> None:
        """Processes, and what they depend on."""
        if what == "taken over":
            self.take_over(_pick(self.waiting, at), None)
        elif what == "job lost" and self.uncarried:
            self.lose_job(at)
        elif what == "fault" and self.streaming:
            self.fail(at, is_raised=bool(words))
        elif what == "shut down" and self.living:
            self.shut_down(at)
        elif self.living:
            self.crash(at, words)

    def begin_conversation(self, content: str) -> None:
        run = lifecycle.run_start(owner=self.user, content=content)
        self.written[run.conversation_id] = [content]

    def write(self, at: int, content: str) -> None:
        conversation_id = _pick(list(self.written), at)
        busy = [r.id for r in self.waiting if r.conversation_id == conversation_id]
        try:
            lifecycle.run_start(owner=self.user, content=content, conversation_id=conversation_id)
        except ConversationBusyError as error:
            assert [error.run_id] == busy
        else:
            assert not busy
            self.written[conversation_id].append(content)

    def stop(self, at: int, is_told: bool) -> None:
        run = _pick(self.active, at)
        lifecycle.run_stop(owner=self.user, run_id=run.id)
        attempt = self.carried.get(run.id)
        if attempt is not None:
            attempt.is_told_to_stop = True
            if is_told:
                self.tell_to_stop(0)

    def tell_to_stop(self, at: int) -> None:
        attempt = _pick([each for each in self.living if each.is_told_to_stop], at)
        self.go(attempt.abort(AbortReason.USER_REQUEST))

    @precondition(lambda self: any(r.status == "awaiting_approval" for r in self.active))
    @rule(at=which, word=decisions)
    def decide(self, at: int, word: dict[str, Any]) -> None:
        found = Approval.objects.filter(decision="", run__in=self.active).select_related("call")
        approval = _pick(list(found.order_by("requested", "id")), at)
        call = approval.call
        if call.name != "paint" and "arguments" in word:
            word = {"decision": "approved"}
        is_stale = call.name == "paint" and approval.version != str(self.world.version)
        try:
            deciding.approval_decide(owner=self.user, approval_id=approval.id, **word)
        except ApprovalStaleError:
            assert is_stale
        else:
            assert word["decision"] == "denied" or not is_stale
            parsed = json.loads(call.arguments or "null") or {}
            value = word.get("arguments", parsed).get("value", 0)
            self.world.words[call.conversation_id, call.call_id] = (
                word["decision"],
                value,
                self.world.version,
            )

    def decide_late(self, at: int, word: dict[str, Any]) -> None:
        """A word on what is decided, closed or gone: it changes nothing."""
        approval = Approval.objects.filter(id=_pick(self.cards, at)).first()
        if approval is None or approval.decision:
            before = RunEvent.objects.count()
            try:
                given = {"owner": self.user, "approval_id": _pick(self.cards, at), **word}
                taken = deciding.approval_decide(**given)
            except (ApprovalClosedError, Approval.DoesNotExist):
                pass
            else:
                assert approval is not None
                assert taken.decision == approval.decision == word["decision"]
            assert RunEvent.objects.count() == before

    def branch(self, at: int, keep: bool) -> None:
        run = _pick(list(Run.objects.order_by("created", "id")), at)
        again = lifecycle.run_continue if keep else lifecycle.run_retry
        busy = [r.id for r in self.active if r.conversation_id == run.conversation_id]
        try:
            again(owner=self.user, run_id=run.id)
        except ConversationBusyError as error:
            assert [error.run_id] == busy
        except RunSupersededError:
            contents = self.written[run.conversation_id]
            assert Message.objects.filter(run=None, conversation=run.conversation).count() > 1
            assert len(contents) > 1
        else:
            assert not busy

    def delete(self, at: int) -> None:
        conversation_id = _pick(list(self.written), at)
        conversations.conversation_delete(owner=self.user, conversation_id=conversation_id)
        del self.written[conversation_id]
        self.deleted.add(conversation_id)
        for each in self.living:
            each.is_told_to_stop |= not Run.objects.filter(id=each.run_id).exists()

    # The model and its tools.

    def _ask(self, request) -> None:
        """What a provider is asked is always valid, and fits."""
        try:
            assert_valid(request.messages)
            assert sum(map(size, request.messages)) <= HISTORY_BYTES
        except AssertionError as error:
            self.world.faults.append(f"a provider was asked {request.messages}: {error}")

    @precondition(lambda self: self.streaming)
    @rule(at=which, piece=pieces, is_thought=st.booleans(), is_kept=st.booleans())
    def say(self, at: int, piece: str, is_thought: bool, is_kept: bool) -> None:
        self.patch.setattr(executor, "CHECKPOINT_SECONDS", -1.0 if is_kept else 1e9)
        delta = ThinkingDelta(piece) if is_thought else TextDelta(piece)
        self.go(_pick(self.streaming, at).feed(delta))

    @precondition(lambda self: self.streaming)
    @rule(
        at=which,
        calls=st.lists(requested, min_size=1, max_size=3),
        is_cut_off=st.sampled_from([False, False, False, True]),
    )
    def call(self, at: int, calls: list[RequestedCall], is_cut_off: bool) -> None:
        attempt = _pick(self.streaming, at)
        reason = "max_tokens" if is_cut_off else "tool_use"
        self.go(attempt.feed(attempt.complete(calls=tuple(calls), finish_reason=reason)))

    @precondition(lambda self: self.streaming)
    @rule(at=which, name=st.sampled_from(["paint", "paint", "work"]), value=st.integers(1, 2))
    def call_one(self, at: int, name: str, value: int) -> None:
        self.call(at, [RequestedCall(None, name, json.dumps({"value": value}))], False)

    @precondition(lambda self: self.streaming)
    @rule(at=which, reason=st.sampled_from(["end_turn", "end_turn", "tool_use", "max_tokens"]))
    def answer(self, at: int, reason: Any) -> None:
        attempt = _pick(self.streaming, at)
        self.go(attempt.feed(attempt.complete(finish_reason=reason)))

    def fail(self, at: int, is_raised: bool) -> None:
        attempt = _pick(self.streaming, at)
        fault = attempt.complete(finish_reason="error", fault=Fault("server_error", "overloaded"))
        self.go(attempt.feed(RuntimeError("broken") if is_raised else fault))

    @precondition(lambda self: self.working)
    @rule(at=which)
    def tool_return(self, at: int) -> None:
        self.go(_pick(self.working, at).tool_return())

    # The processes.

    @precondition(lambda self: self.uncarried)
    @rule(
        at=which,
        fuse=st.none() | st.none() | st.tuples(st.integers(0, 8), st.booleans()),
    )
    def carry(self, at: int, fuse: tuple[int, bool] | None) -> None:
        self.take_over(_pick(self.uncarried, at), fuse)

    def take_over(self, run: Run, fuse: tuple[int, bool] | None) -> None:
        """Begin a run, or take it up again; who carries it now may be dead, or only silent."""
        if (silent := self.carried.pop(run.id, None)) is not None:
            self.zombies.append(silent)
        attempt = Attempt(run.id, self._ask)
        attempt.fuse = fuse
        self.attempts.append(attempt)
        if attempt.job_id is not None:
            self.carried[run.id] = attempt
            self.go(attempt.begin())

    def crash(self, at: int, words: list[str]) -> None:
        """Killed, perhaps with words that its listeners have and the log has not."""
        attempt = _pick(self.living, at)
        if not attempt.in_tool:
            self.patch.setattr(executor, "CHECKPOINT_SECONDS", 1e9)
            attempt.writes.clear()
            self.go(attempt.feed(*map(TextDelta, words)))
        self.go(attempt.kill())

    def shut_down(self, at: int) -> None:
        self.go(_pick(self.living, at).abort(AbortReason.SHUTDOWN))

    def lose_job(self, at: int) -> None:
        run = _pick(self.uncarried, at)
        _execute("DELETE FROM procrastinate_jobs WHERE id = %s", run.job_id)

    def sweep(self, is_late: bool) -> None:
        """A day later, or so long that nobody's word is awaited any more.

        The database's ``now()`` stands still in a transaction: a day is more than a test lasts.
        """
        Run.objects.update(
            created=F("created") - DAY,
            started=F("started") - DAY,
            stop_requested=F("stop_requested") - DAY,
            finished=F("finished") - DAY,
        )
        if is_late:
            late = Approval.objects.filter(decision="", expires__lt=timezone.now() + 8 * DAY)
            self.patch.setattr(approvals, "_late", late.all)
        gone = [each.worker_id for each in self.attempts if each not in self.carried.values()]
        _execute(
            "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 day' "
            "WHERE id = ANY(%s)",
            gone,
        )
        recovery.stopped_close()
        recovery.orphans_close()
        recovery.late_expire()
        self.patch.setattr(approvals, "_late", LATE)
        event_log.logs_fold()

    # The listeners.

    def listen(self, at: int) -> None:
        self.ears.append(Ear(_pick(list(Run.objects.order_by("created", "id")), at).id))

    @precondition(lambda self: self.written)
    @rule(at=which, seen=st.integers(0, 30))
    def listen_again(self, at: int, seen: int) -> None:
        """It has lost its stream, and goes on from some event that it saw."""
        if at >= len(self.ears):
            self.listen(seen)
            return
        ear = _pick(self.ears, at)
        self.go(ear.hang_up())
        del ear.seen[seen % (len(ear.seen) + 1) :]

    def _hear(self) -> None:
        """Everybody hears all that there is: live where it is told, else from the log."""
        for ear in self.ears:
            run = Run.objects.filter(id=ear.run_id).first()
            log = _log(ear.run_id)
            last = (log[-1].attempt, log[-1].seq) if log else event_log.START
            self.go(self._listened(ear, last, self.carried.get(ear.run_id)))
            if run is not None:
                log = _log(ear.run_id)
                ear.assert_each_once(log, is_folded=run.log_folded)

    async def _listened(self, ear: Ear, last: tuple[int, int], attempt: Attempt | None) -> None:
        if isinstance(ear.stage, Attempt) and ear.stage.is_dead:
            await ear.hang_up()
        if ear.task is None:
            await ear.connect(attempt or self.elsewhere)
        elif ear.stage is not attempt and ear.last != last:
            assert ear.stage is not None
            ear.stage.hub.news_in_log(ear.run_id)
        await ear.hear(last)

    # What must hold.

    @invariant()
    def holds(self) -> None:
        self._look()
        in_one = Counter(run.conversation_id for run in self.active)
        assert max(in_one.values(), default=0) <= 1
        pending = Approval.objects.filter(decision="").order_by("requested", "id")
        self.cards += [a for a in pending.values_list("id", flat=True) if a not in self.cards]
        self.world.asked |= set(pending.values_list("run__conversation_id", "call__call_id"))
        for run in Run.objects.all():
            self._run_holds(run)
        for conversation in Conversation.objects.all():
            self._conversation_holds(conversation)
        self._nothing_happens_unasked()
        assert not Run.objects.filter(conversation_id__in=self.deleted).exists()
        assert Conversation.objects.count() == len(self.written)
        self._hear()

    def _look(self) -> None:
        self._bury()
        self.active = list(Run.objects.filter(status__in=ACTIVE_STATUSES).order_by("created", "id"))

    def _bury(self) -> None:
        """Processes that ended, by themselves or not, carry nothing any more."""
        self.zombies = [each for each in self.zombies if not each.is_over]
        self.carried = {key: each for key, each in self.carried.items() if not each.is_over}

    def _run_holds(self, run: Run) -> None:
        log = _log(run.id)
        names = [item.event.name for item in log]
        keys = [(item.attempt, item.seq) for item in log]
        assert keys == sorted(set(keys))
        results = Counter(i.event.tool_call_id for i in log if i.event.name == "tool_result")
        assert max(results.values(), default=0) <= 1, "a call has two results"
        if run.status != "finished":
            assert "done" not in names
            awaited = Approval.objects.filter(run=run, decision="").exists()
            assert awaited == (run.status == "awaiting_approval")
            return
        calls = ToolCall.objects.filter(message__run=run)
        assert not calls.filter(status__in=OPEN_STATUSES).exists()
        assert results.keys() == set(calls.values_list("call_id", flat=True))
        assert not Approval.objects.filter(run=run, decision="").exists()
        assert_sound(run, log)

    def _conversation_holds(self, conversation: Conversation) -> None:
        rows = branch_rows(conversation_id=conversation.id, tip_id=conversation.leaf_id)
        said = [row.content for row in rows if row.role == "user"]
        assert said == self.written[conversation.id], "a message of the person was lost"
        history = list(history_messages(messages=rows))
        for end in range(1, len(history) + 1):
            window = fit(repair(history[:end]).messages, limit=HISTORY_BYTES)
            assert_valid(window.messages)
            assert sum(map(size, window.messages)) <= HISTORY_BYTES

    def _nothing_happens_unasked(self) -> None:
        assert not self.world.faults
        assert len(self.world.done) == len(set(self.world.done)), "a side effect came twice"
        unrun = ["pending", "awaiting_approval", "denied", "skipped"]
        calls = ToolCall.objects.filter(status__in=unrun)
        unrun_calls = set(calls.values_list("conversation_id", "call_id"))
        assert not unrun_calls & set(self.world.done), "a call ran that was not to run"

    def teardown(self) -> None:
        """Everything comes to its end, whatever state it was left in."""
        try:
            for attempt in self.living:
                self.go(attempt.kill())
            self._bury()
            for run in Run.objects.filter(status__in=ACTIVE_STATUSES):
                lifecycle.run_stop(owner=self.user, run_id=run.id)
            self.sweep(is_late=True)
            self.holds()
            assert not self.active
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
                cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        finally:
            for attempt in self.attempts:
                if hasattr(attempt, "carrying"):
                    self.go(attempt.kill())
            for ear in self.ears:
                self.go(ear.hang_up())
            self.runner.close()
            transaction.set_rollback(True)
            self.savepoint.__exit__(None, None, None)


def _pick(found: list[Any], at: int) -> Any:
    return found[at % len(found)]


def _log(run_id: UUID):
    return event_log.events_after(run_id=run_id, position=event_log.START, limit=10_000)


def _execute(sql: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


@pytest.mark.thorough
def test_runs_keep_their_invariants_whatever_happens(
    user, units, world, monkeypatch, settings_of_machine
):
    class Played(Machine):
        def __init__(self) -> None:
            super().__init__(user, world, monkeypatch)

    run_state_machine_as_test(
        Played,
        settings=settings(
            max_examples=EXAMPLES or FEW,
            derandomize=not EXAMPLES,
            database=None,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        ),
    )


@pytest.fixture
def settings_of_machine(settings, monkeypatch):
    settings.NOTEWIRE_HISTORY_BYTES = HISTORY_BYTES
    settings.NOTEWIRE_GATHER_MS = 0
    monkeypatch.setattr(executor, "unit_of_work", unit_of_process)
    monkeypatch.setattr(flusher, "unit_of_work", unit_of_flusher)
    monkeypatch.setattr(following, "SETTLE_SECONDS", -1.0)
