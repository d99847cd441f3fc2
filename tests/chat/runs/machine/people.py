"""People: they write, stop, ask for another answer, and delete."""

from __future__ import annotations

from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from procrastinate.job_context import AbortReason

from chat.exceptions import ConversationBusyError, RunSupersededError
from chat.models import Message, Run
from chat.runs import lifecycle
from chat.transcript import conversations
from tests.chat.runs.machine.carriers import Carriers
from tests.chat.runs.machine.play import pick, pieces, which


class People(Carriers):
    @rule(
        what=st.sampled_from(["write", "write", "branch"]),
        at=which,
        content=pieces,
        keep=st.booleans(),
    )
    def speak(self, what: str, at: int, content: str, keep: bool) -> None:
        """Someone wants an answer, and mostly somebody carries the run at once."""
        if at >= len(self.written):
            run = lifecycle.run_start(owner=self.user, content=content)
            self.written[run.conversation_id] = [content]
        elif what == "write":
            self.write(pick(list(self.written), at), content)
        else:
            self.branch(at, keep)
        self.look()
        if self.uncarried and at:
            self.take_over(pick(self.uncarried, at))

    @precondition(lambda self: self.may_be_disturbed and self.active)
    @rule(what=st.sampled_from(["stop", "stop", "delete"]), at=which, is_told=st.booleans())
    def interfere(self, what: str, at: int, is_told: bool) -> None:
        if what == "stop":
            self.stop(pick(self.active, at), is_told=is_told)
        elif len(self.written) > 1:
            self.delete(pick(list(self.written), at))

    def write(self, conversation_id: UUID, content: str) -> None:
        busy = [r.id for r in self.waiting if r.conversation_id == conversation_id]
        try:
            lifecycle.run_start(owner=self.user, content=content, conversation_id=conversation_id)
        except ConversationBusyError as error:
            assert [error.run_id] == busy
        else:
            assert not busy
            self.written[conversation_id].append(content)

    def branch(self, at: int, keep: bool) -> None:
        run = pick(list(Run.objects.order_by("created", "id")), at)
        again = lifecycle.run_continue if keep else lifecycle.run_retry
        busy = [r.id for r in self.active if r.conversation_id == run.conversation_id]
        try:
            again(owner=self.user, run_id=run.id)
        except ConversationBusyError as error:
            assert [error.run_id] == busy
        except RunSupersededError:
            hides = keep and Run.objects.filter(message=run.message_id).count() > 1
            written = Message.objects.filter(run=None, conversation=run.conversation).count()
            assert hides or (written > 1 and len(self.written[run.conversation_id]) > 1)
        else:
            assert not busy

    def stop(self, run: Run, *, is_told: bool) -> None:
        lifecycle.run_stop(owner=self.user, run_id=run.id)
        if (attempt := self.carried.get(run.id)) is not None:
            attempt.is_told_to_stop = True
            if is_told:
                self.go(attempt.abort(AbortReason.USER_REQUEST))

    def delete(self, conversation_id: UUID) -> None:
        conversations.conversation_delete(owner=self.user, conversation_id=conversation_id)
        del self.written[conversation_id]
        self.deleted.add(conversation_id)
        self.account.forget(conversation_id)
        for each in self.living:
            each.is_told_to_stop |= not Run.objects.filter(id=each.run_id).exists()
