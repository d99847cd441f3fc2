"""What must hold after every step: of each run and conversation, of what was asked, of what ran."""

from __future__ import annotations

import json
from collections import Counter
from uuid import UUID

from django.db import connection
from hypothesis.stateful import invariant

from chat.events import ToolResult
from chat.loop.repair import repair
from chat.loop.window import fit, size
from chat.models import Approval, Conversation, Message, Run, ToolCall
from chat.runs import approvals, rules
from chat.transcript.history import OPEN_STATUSES, branch_rows, history_messages
from chat.types import HistoryMessage
from tests.chat.loop.rules import assert_valid
from tests.chat.runs.invariants import assert_sound
from tests.chat.runs.machine import jobs
from tests.chat.runs.machine.account import Word
from tests.chat.runs.machine.listeners import Listeners
from tests.chat.runs.machine.play import HISTORY_BYTES, Card
from tests.chat.runs.machine.wall import PAINTING, Deed, Key, Seen

#: Where each row is: every change of one puts it elsewhere.
_PLACES = """
SELECT conversation_id, md5(string_agg(place, ' ' ORDER BY place)) FROM (
    SELECT id AS conversation_id, concat('c', ctid, xmin, cmin) AS place FROM chat_conversation
    UNION ALL SELECT conversation_id, concat('r', ctid, xmin, cmin) FROM chat_run
    UNION ALL SELECT conversation_id, concat('m', ctid, xmin, cmin) FROM chat_message
    UNION ALL SELECT conversation_id, concat('t', ctid, xmin, cmin) FROM chat_toolcall
    UNION ALL SELECT conversation_id, concat('a', row.ctid, row.xmin, row.cmin)
        FROM chat_approval AS row JOIN chat_run AS run ON run.id = run_id
    UNION ALL SELECT conversation_id, concat('e', row.ctid, row.xmin, row.cmin)
        FROM chat_runevent AS row JOIN chat_run AS run ON run.id = run_id
) AS rows GROUP BY conversation_id
"""


class Holding(Listeners):
    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.places: dict[UUID, str] = {}
        self.histories: dict[UUID, list[HistoryMessage]] = {}
        self.judged = 0

    @invariant()
    def holds(self) -> None:
        self.steps += 1
        self.look()
        in_one = Counter(run.conversation_id for run in self.active)
        assert max(in_one.values(), default=0) <= 1
        assert not self.faults
        self._deeds_hold()
        self._cards_hold()
        for conversation in self._changed():
            for run in Run.objects.filter(conversation=conversation):
                self.logs.pop(run.id, None)
                self._run_holds(run)
            self._conversation_holds(conversation)
        self._jobs_hold()
        listed = {(row.tool, row.conversation_id) for row in rules.rule_list(owner=self.user)}
        assert listed == set(self.account.rules)
        self.hear()

    def _changed(self) -> list[Conversation]:
        """Whatever is as it was when it was looked at last holds still."""
        with connection.cursor() as cursor:
            cursor.execute(_PLACES)
            places = dict(cursor.fetchall())
        assert places.keys() == self.written.keys()
        if self.places.keys() - places.keys():
            self.logs.clear()
        changed = [key for key, place in places.items() if self.places.get(key) != place]
        self.places = places
        return list(Conversation.objects.filter(id__in=changed))

    # Runs and conversations.

    def _run_holds(self, run: Run) -> None:
        log = self.log(run.id)
        names = [item.event.name for item in log]
        keys = [(item.attempt, item.seq) for item in log]
        assert keys == sorted(set(keys))
        told = [item.event for item in log if isinstance(item.event, ToolResult)]
        results = Counter(event.tool_call_id for event in told)
        assert max(results.values(), default=0) <= 1, "a call has two results"
        calls = list(ToolCall.objects.filter(message__run=run).order_by("position"))
        open_calls = [call for call in calls if call.status in OPEN_STATUSES]
        awaited = Approval.objects.filter(run=run, decision="").exists()
        assert awaited == (run.status == "awaiting_approval")
        if run.status != "finished":
            assert "done" not in names
            if awaited:
                self._all_are_asked(run, open_calls)
            return
        assert not open_calls
        assert results.keys() == {call.call_id for call in calls}
        unknown = {call.name for call in calls if call.status == "unknown"}
        assert run.stop_reason != "end_turn" or "watch" not in unknown
        assert_sound(run, log)

    def _conversation_holds(self, conversation: Conversation) -> None:
        rows = branch_rows(conversation_id=conversation.id, tip_id=conversation.leaf_id)
        said = [row.content for row in rows if row.role == "user"]
        assert said == self.written[conversation.id], "a message of the person was lost"
        history = list(history_messages(messages=rows))
        known = self.histories.get(conversation.id, [])
        self.histories[conversation.id] = history
        for end in range(1, len(history) + 1):
            if history[:end] == known[:end]:
                continue
            window = fit(repair(history[:end]).messages, limit=HISTORY_BYTES)
            assert_valid(window.messages)
            assert sum(map(size, window.messages)) <= HISTORY_BYTES

    def _jobs_hold(self) -> None:
        """Somebody carries each run, or will find it."""
        for run in self.waiting:
            status, worker_id = jobs.job_state(run.job_id)
            if (attempt := self.carried.get(run.id)) is not None:
                assert (status, worker_id) == ("doing", attempt.worker_id)
            elif not run.stop_requested:
                assert status in ("todo", "doing") or run.id in self.lost

    # What was asked.

    def _cards_hold(self) -> None:
        for approval in approvals.approvals_pending(owner=self.user):
            if approval.id not in self.cards:
                self.cards[approval.id] = self._asked(approval)
            self._card_holds(approval)

    def _card_holds(self, approval: Approval) -> None:
        is_tainted = self.cards[approval.id].is_tainted
        scopes = ["once"] if is_tainted else ["once", "conversation", "always"]
        assert approval.preview["scopes"] == scopes, "rules are offered that end no asking"
        if approval.version == str(self.wall.version):
            shown = self.wall.lines(approval.call.name, _value(approval.call))
            assert approval.preview["diff"] == shown

    def _asked(self, approval: Approval) -> Card:
        """Whether it was to be asked for, by what its attempt knew."""
        call = approval.call
        key = _key(call)
        before = _before(call)
        is_tainted = _is_tainted(before)
        word = self.account.words.pop(key, None)
        if word is None:
            asks = self.stances[approval.run_id, approval.run.attempt].asks(
                tool=call.name, conversation_id=call.conversation_id, is_tainted=is_tainted
            )
            assert asks, f"{call.name} was asked for, and needs no word"
        else:
            now = self.wall.seen(call.name, word.seen.value)
            assert word.is_yes, "a denied call was asked for again"
            assert not self._is_for(word, now, call, before), "a yes that holds was asked again"
        if call.name in PAINTING:
            assert approval.version == str(self.wall.version)
        self.account.asked.add(key)
        return Card(key, approval.digest, is_tainted)

    def _all_are_asked(self, run: Run, open_calls: list[ToolCall]) -> None:
        """Calls of one answer are asked for in one go, as far as they may still run."""
        stance = self.stances[run.id, run.attempt]
        for call in open_calls:
            key = _key(call)
            if self.account.is_denied([key]):
                return
            is_asked = call.status == "awaiting_approval" or key in self.account.words
            if not is_asked and _is_whole(call):
                assert not stance.asks(
                    tool=call.name,
                    conversation_id=call.conversation_id,
                    is_tainted=_is_tainted(_before(call)),
                ), f"{call.name} is to be asked for with the others"

    def _is_for(self, word: Word, seen: Seen, call: ToolCall, before: list[ToolCall]) -> bool:
        """Whether a word is for this, or for what calls of the same answer made of it."""
        here = [_key(each) for each in before if each.message_id == call.message_id]
        changes = self.wall.changes[word.seen.version - 1 : seen.version - 1]
        return word.is_for(
            call.name, seen, is_changed=not set(changes) <= set(self.account.approved(here))
        )

    # What ran.

    def _deeds_hold(self) -> None:
        for deed in self.wall.deeds[self.judged :]:
            self._deed_holds(deed)
        self.judged = len(self.wall.deeds)
        once = [deed.key for deed in self.wall.deeds if deed.name != "watch"]
        assert len(once) == len(set(once)), "a side effect came twice"
        unrun = ToolCall.objects.filter(
            status__in=["pending", "awaiting_approval", "denied", "skipped"]
        )
        assert not set(map(_key, unrun)) & set(once), "a call ran that was not to run"

    def _deed_holds(self, deed: Deed) -> None:
        """Either a person said yes to just this, or nobody was to be asked."""
        calls = ToolCall.objects.select_related("message")
        call = calls.get(conversation_id=deed.key[0], call_id=deed.key[1])
        assert _is_whole(call), f"{deed} ran, and may lack some of its arguments"
        before = _before(call)
        here = [_key(each) for each in before if each.message_id == call.message_id]
        assert not self.account.is_denied(here), f"{deed} ran behind a denied call"
        word = self.account.words.get(deed.key)
        if word is not None:
            is_for = self._is_for(word, deed.seen, call, before)
            assert is_for, f"{deed} ran, and was told {word}"
            return
        assert deed.key not in self.account.asked, f"{deed} ran without a word"
        assert not deed.attempt.stance.asks(
            tool=deed.name, conversation_id=deed.key[0], is_tainted=_is_tainted(before)
        ), f"{deed} ran, and nobody was asked"


def _key(call: ToolCall) -> Key:
    return (call.conversation_id, call.call_id)


def _value(call: ToolCall) -> int:
    value: int = (json.loads(call.arguments or "null") or {}).get("value", 0)
    return value


def _is_whole(call: ToolCall) -> bool:
    """Whether its arguments are all that the model would have sent."""
    if call.arguments in ("", "null"):
        return call.message.finish_reason != "max_tokens"
    return call.arguments.endswith("}")


def _is_tainted(before: list[ToolCall]) -> bool:
    """Whether there is text from outside among the results."""
    return any(call.name == "paint" and call.status == "done" for call in before)


def _before(call: ToolCall) -> list[ToolCall]:
    """The calls before it in its branch, in no order."""
    messages = Message.objects.filter(conversation_id=call.conversation_id)
    parents: dict[UUID, UUID | None] = dict(messages.values_list("id", "parent_id"))
    line: set[UUID] = set()
    current = parents[call.message_id]
    while current is not None:
        line.add(current)
        current = parents[current]
    return [
        each
        for each in ToolCall.objects.filter(conversation_id=call.conversation_id)
        if each.message_id in line
        or (each.message_id == call.message_id and each.position < call.position)
    ]
