"""Processes that take up runs, die, are only silent, or shut down; and what time brings."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db.models import F
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from procrastinate.job_context import AbortReason

from chat.loop.window import size
from chat.models import Approval, Run
from chat.runs import approvals, event_log, executor, lifecycle, recovery
from chat.types import Fault, ModelRequest, RequestedCall, TextDelta
from tests.chat.loop.rules import assert_valid
from tests.chat.runs.machine import jobs
from tests.chat.runs.machine.play import HISTORY_BYTES, Play, pick, pieces, which
from tests.chat.runs.machine.processes import Attempt

DAY = timedelta(days=1)
LATE = approvals._late


class Carriers(Play):
    @precondition(lambda self: self.uncarried)
    @rule(
        at=which,
        fuse=st.none() | st.none() | st.tuples(st.integers(0, 8), st.booleans()),
        is_stopped=st.sampled_from([False] * 7 + [True]),
    )
    def carry(self, at: int, fuse: tuple[int, bool] | None, is_stopped: bool) -> None:
        """Somebody takes a run that waits, and may be told to stop before it begins."""
        self.take_over(pick(self.uncarried, at), fuse, is_stopped=is_stopped)

    @precondition(lambda self: self.may_be_disturbed and self.living)
    @rule(
        what=st.sampled_from(["crash", "shut down", "silent", "silent", "silent", "fault", "told"]),
        at=which,
        words=st.lists(pieces, max_size=2),
    )
    def break_down(self, what: str, at: int, words: list[str]) -> None:
        """Processes, and the models that they depend on."""
        attempt = pick(self.living, at)
        if what == "silent" and self.carried:
            self.fall_silent(pick(list(self.carried), at), words)
        elif what == "fault" and self.streaming:
            self.fail(pick(self.streaming, at), is_raised=bool(words))
        elif what == "shut down":
            self.go(attempt.abort(AbortReason.SHUTDOWN))
        elif what == "told" and any(each.is_told_to_stop for each in self.living):
            self.tell_to_stop(at)
        else:
            self.crash(attempt, words)

    @precondition(lambda self: self.may_be_disturbed)
    @rule(what=st.sampled_from(["day", "day", "week", "lost"]), at=which)
    def pass_by(self, what: str, at: int) -> None:
        if what == "lost" and self.uncarried:
            self.lose_job(pick(self.uncarried, at))
        else:
            self.pass_time(is_late=what == "week")

    def take_over(
        self, run: Run, fuse: tuple[int, bool] | None = None, *, is_stopped: bool = False
    ) -> None:
        """Begin a run, or take it up again; who carries it now may be dead, or only silent."""
        if (silent := self.carried.pop(run.id, None)) is not None:
            self.zombies.append(silent)
        if jobs.job_state(run.job_id)[0] == "doing":
            self.silence()
            self.go(jobs.stalled_take_up())
        attempt = Attempt(run, on_request=self.check_request, stance=self.account.stance(self.wall))
        attempt.fuse = fuse
        self.attempts.append(attempt)
        if attempt.job is None:
            return
        self.carried[run.id] = attempt
        if is_stopped:
            lifecycle.run_stop(owner=self.user, run_id=run.id)
            attempt.is_told_to_stop = True
        self.go(attempt.begin())
        begun = Run.objects.get(id=run.id).attempt
        self.stances.setdefault((run.id, begun), attempt.stance)

    def check_request(self, request: ModelRequest) -> None:
        """What a provider is asked is always valid, and fits."""
        try:
            assert_valid(request.messages)
            assert sum(map(size, request.messages)) <= HISTORY_BYTES
        except AssertionError as error:
            self.faults.append(f"a provider was asked {request.messages}: {error}")

    def crash(self, attempt: Attempt, words: list[str]) -> None:
        """Killed, perhaps with words that its listeners have and the log has not."""
        if not attempt.in_tool:
            self.patch.setattr(executor, "CHECKPOINT_SECONDS", 1e9)
            attempt.writes.clear()
            self.go(attempt.feed(*map(TextDelta, words)))
        self.go(attempt.kill())

    def fall_silent(self, run_id: UUID, words: list[str]) -> None:
        """Taken for dead: its run is taken up; then it goes on, and asks for a change."""
        silent = self.carried[run_id]
        self.take_over(next(run for run in self.active if run.id == run_id))
        if silent.in_tool:
            self.go(silent.tool_return())
        elif not silent.is_over:
            self.go(silent.feed(*map(TextDelta, words)))
            asked = (RequestedCall(None, "add", '{"value": 3}'),)
            if not silent.is_over:
                self.go(silent.feed(silent.complete(calls=asked, finish_reason="tool_use")))

    def lose_job(self, run: Run) -> None:
        jobs.job_lose(run.job_id)
        self.lost.add(run.id)

    def fail(self, attempt: Attempt, *, is_raised: bool) -> None:
        fault = attempt.complete(finish_reason="error", fault=Fault("server_error", "overloaded"))
        self.go(attempt.feed(RuntimeError("broken") if is_raised else fault))

    def tell_to_stop(self, at: int) -> None:
        attempt = pick([each for each in self.living if each.is_told_to_stop], at)
        self.go(attempt.abort(AbortReason.USER_REQUEST))

    def silence(self) -> None:
        gone = [each.worker_id for each in self.attempts if each not in self.carried.values()]
        jobs.workers_silence(gone)

    def pass_time(self, *, is_late: bool) -> None:
        """A day later, or so long that nobody's word is awaited any more.

        The database's ``now()`` stands still in a transaction: a day is more than a test lasts.
        """
        self.look()
        Run.objects.update(
            created=F("created") - DAY,
            started=F("started") - DAY,
            stop_requested=F("stop_requested") - DAY,
            finished=F("finished") - DAY,
        )
        if is_late:
            late = Approval.objects.filter(decision="", expires__lt=timezone.now() + 8 * DAY)
            self.patch.setattr(approvals, "_late", late.all)
        self.silence()
        expected = {run.id: self._end_in_time(run, is_late) for run in self.active}
        self.go(jobs.stalled_take_up())
        recovery.stopped_close()
        recovery.orphans_close()
        recovery.late_expire()
        self.patch.setattr(approvals, "_late", LATE)
        event_log.logs_fold()
        ended = dict(Run.objects.filter(id__in=expected).values_list("id", "stop_reason"))
        assert ended == expected, "a run was ended that goes on, or one was not that does not"

    def _end_in_time(self, run: Run, is_late: bool) -> str:
        """Why a run ends that nobody will carry on; "" where it goes on."""
        if run.status == "awaiting_approval":
            return "deadline" if is_late else ""
        if run.stop_requested and run.id not in self.carried:
            return "stopped"
        has_job = jobs.job_state(run.job_id)[0] in ("todo", "doing")
        return "" if has_job or run.stop_requested else "error"
