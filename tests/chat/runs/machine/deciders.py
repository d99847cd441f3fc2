"""People decide on calls, one by one or all of one answer, and say when to ask them at all.

What must then be asked, and what a word is refused for, is said here and in ``account`` again.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from chat.exceptions import ApprovalClosedError, ApprovalInvalidError, ApprovalStaleError
from chat.models import Approval, RunEvent, ToolRule
from chat.runs import approvals, deciding, rules
from tests.chat.runs.machine.account import Word
from tests.chat.runs.machine.carriers import Carriers
from tests.chat.runs.machine.play import pick, which
from tests.chat.runs.machine.wall import PAINTING

#: What a person may say of a call.
WORDS: list[dict[str, Any]] = [
    {"decision": "approved"},
    {"decision": "approved", "arguments": {"value": 7}},
    {"decision": "denied", "reason": "no"},
    {"decision": "denied", "go_on": True},
    {"decision": "approved", "arguments": {"value": "much"}},
]
words = st.sampled_from([WORDS[0], WORDS[0], *WORDS])
changes = st.sampled_from([False, False, False, True])
scopes = st.sampled_from(["once", "once", "once", "conversation", "always"])


class Deciders(Carriers):
    @initialize(mode=st.sampled_from(["balanced", "careful"]))
    def begin(self, mode: Any) -> None:
        self._choose(mode)

    @precondition(lambda self: self.asking)
    @rule(at=which, word=words, scope=scopes, is_first_look=st.booleans(), is_changed=changes)
    def decide(
        self, at: int, word: dict[str, Any], scope: str, is_first_look: bool, is_changed: bool
    ) -> None:
        """``is_first_look``: what the person looked at is what the card showed first.

        ``is_changed``: somebody changed the wall before the word came.
        """
        if is_changed:
            self.wall.change()
        found = approvals.approvals_pending(owner=self.user).filter(run__in=self.asking)
        approval = pick(list(found), at)
        given = {**word, "scope": scope}
        if is_first_look:
            given["seen"] = self.cards[approval.id].digest
        expected = self._refusal(approval, given)
        try:
            deciding.approval_decide(owner=self.user, approval_id=approval.id, **given)
        except deciding.REFUSALS as error:
            assert type(error) is expected, error
            self._refused(approval, expected)
        else:
            assert expected is None
            self._taken(approval, given)
        self._go_on(at)

    @precondition(lambda self: self.asking)
    @rule(at=which, word=words, chosen=st.integers(1, 7), is_first_look=st.booleans())
    def decide_together(
        self, at: int, word: dict[str, Any], chosen: int, is_first_look: bool
    ) -> None:
        """The same word on some calls of one answer, the first of them perhaps edited."""
        run = pick(self.asking, at)
        found = approvals.approvals_pending(owner=self.user, run_id=run.id)
        pending = list(found.order_by("call__position"))
        pending = [a for n, a in enumerate(pending) if chosen & (1 << n)] or pending
        edited = {pending[0].id: word["arguments"]} if "arguments" in word else {}
        seen = {a.id: self.cards[a.id].digest for a in pending if is_first_look}
        said = {k: v for k, v in word.items() if k != "arguments"}
        given = {a.id: {**said, "seen": seen.get(a.id)} for a in pending}
        if edited:
            given[pending[0].id] |= {"arguments": word["arguments"]}
        expected = {a.id: self._refusal(a, given[a.id]) for a in pending}
        refused = deciding.approvals_decide(
            owner=self.user,
            approval_ids=[a.id for a in pending],
            arguments=edited,
            seen=seen,
            **said,
        )
        told = {each.approval_id: type(each.error) for each in refused}
        assert told == {key: error for key, error in expected.items() if error is not None}
        for approval in pending:
            if (error := expected[approval.id]) is None:
                self._taken(approval, given[approval.id])
            else:
                self._refused(approval, error)
        self._go_on(at)

    @precondition(lambda self: self.may_be_disturbed)
    @rule(
        what=st.sampled_from(["mode", "revoke", "reword", "late", "late", "wall", "wall"]),
        at=st.integers(0, 7),
        word=words,
    )
    def change_mind(self, what: str, at: int, word: dict[str, Any]) -> None:
        """What is to be asked about from the next attempt on, and what words are about."""
        if what == "revoke" and self.account.rules:
            self._revoke(at)
        elif what == "late" and self.cards:
            self._decide_late(pick(list(self.cards), at), word)
        elif what == "mode":
            self._choose("balanced" if self.account.mode == "careful" else "careful")
        elif what == "reword":
            self.wall.reword()
        else:
            self.wall.change()

    def _decide_late(self, approval_id: UUID, word: dict[str, Any]) -> None:
        """A word on what is decided, closed or gone: it changes nothing."""
        approval = Approval.objects.filter(id=approval_id).first()
        if approval is not None and not approval.decision:
            return
        before = RunEvent.objects.count()
        try:
            given = {"owner": self.user, "approval_id": approval_id, **word}
            taken = deciding.approval_decide(**given)
        except (ApprovalClosedError, Approval.DoesNotExist):
            pass
        else:
            assert approval is not None
            assert taken.decision == approval.decision == word["decision"]
        assert RunEvent.objects.count() == before

    def _choose(self, mode: Any) -> None:
        rules.mode_set(owner=self.user, mode=mode)
        self.account.mode = mode

    def _revoke(self, at: int) -> None:
        row = pick(list(rules.rule_list(owner=self.user)), at)
        stranger = get_user_model()(id=self.user.id + 1)
        with pytest.raises(ToolRule.DoesNotExist):
            rules.rule_delete(owner=stranger, rule_id=row.id)
        rules.rule_delete(owner=self.user, rule_id=row.id)
        del self.account.rules[row.tool, row.conversation_id]

    def _go_on(self, at: int) -> None:
        """Mostly somebody carries the run on at once."""
        self.look()
        if self.uncarried and at:
            self.take_over(pick(self.uncarried, at))

    def _refusal(self, approval: Approval, given: dict[str, Any]) -> type[Exception] | None:
        if given["decision"] == "denied":
            return None
        card = self.cards[approval.id]
        if given.get("scope", "once") != "once" and card.is_tainted:
            return ApprovalInvalidError
        if "arguments" in given and not isinstance(given["arguments"]["value"], int):
            return ApprovalInvalidError
        is_painting = approval.call.name in PAINTING
        is_stale = is_painting and approval.version != str(self.wall.version)
        return (
            ApprovalStaleError
            if is_stale or given.get("seen") not in (None, approval.digest)
            else None
        )

    def _refused(self, approval: Approval, error: type[Exception] | None) -> None:
        """It still waits; what was stale shows now what the call would do."""
        approval.refresh_from_db()
        assert approval.decision == ""
        if error is ApprovalStaleError and approval.call.name in PAINTING:
            assert approval.version == str(self.wall.version)

    def _taken(self, approval: Approval, given: dict[str, Any]) -> None:
        call = approval.call
        parsed = json.loads(call.arguments or "null") or {}
        edited = given.get("arguments")
        value = (parsed if edited is None else edited).get("value", 0)
        is_yes = given["decision"] == "approved"
        self.account.words[call.conversation_id, call.call_id] = Word(
            is_yes=is_yes,
            seen=self.wall.seen(call.name, value),
            is_edited=edited is not None,
            goes_on=bool(given.get("go_on")),
        )
        places: dict[str, UUID | None] = {"conversation": call.conversation_id, "always": None}
        if is_yes and (scope := given.get("scope", "once")) in places:
            self.account.allow(call.name, places[scope], self.wall)
