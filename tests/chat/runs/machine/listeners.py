"""Listeners that come, lose their stream and go on from some event that they saw."""

from __future__ import annotations

from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from chat.events import LoggedEvent
from chat.models import Run
from chat.runs import event_log
from tests.chat.runs.conftest import Stage
from tests.chat.runs.machine.ears import Ear
from tests.chat.runs.machine.play import Play, log_of, pick, which
from tests.chat.runs.machine.processes import Attempt


class Listeners(Play):
    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.ears: list[Ear] = []
        self.elsewhere = Stage(None)
        #: The logs as they are, read again where something changed.
        self.logs: dict[UUID, tuple[LoggedEvent, ...]] = {}

    @precondition(lambda self: self.may_be_disturbed)
    @rule(at=which, seen=st.integers(0, 30))
    def listen_again(self, at: int, seen: int) -> None:
        if at >= len(self.ears):
            run = pick(list(Run.objects.order_by("created", "id")), seen)
            self.ears.append(Ear(run.id))
            return
        ear = pick(self.ears, at)
        self.go(ear.hang_up())
        del ear.seen[seen % (len(ear.seen) + 1) :]

    def log(self, run_id: UUID) -> tuple[LoggedEvent, ...]:
        if run_id not in self.logs:
            self.logs[run_id] = log_of(run_id)
        return self.logs[run_id]

    def hear(self) -> None:
        """Everybody hears all that there is: live where it is told, else from the log."""
        for ear in self.ears:
            log = self.log(ear.run_id)
            last = (log[-1].attempt, log[-1].seq) if log else event_log.START
            self.go(self._listened(ear, last, self.carried.get(ear.run_id)))
            run = Run.objects.filter(id=ear.run_id).only("log_folded").first()
            if run is not None:
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
