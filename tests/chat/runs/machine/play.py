"""The state of a game: who carries what, what was written and said, and what each step may pick."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from chat.events import LoggedEvent
from chat.models import ACTIVE_STATUSES, Run
from chat.runs import event_log
from tests.chat.runs.machine.account import Account, Stance
from tests.chat.runs.machine.processes import PATIENCE_SECONDS, Attempt
from tests.chat.runs.machine.wall import Key, Wall

T = TypeVar("T")

HISTORY_BYTES = 6_000

which = st.integers(0, 3)
pieces = st.sampled_from(["milk ", "and\n\n", "käse\u2028", "w" * 2_500])


@dataclass
class Card:
    """What a person was asked: about which call, and what it showed first."""

    key: Key
    digest: str
    is_tainted: bool


class AllRules:
    """In the place of Hypothesis' choice of some: where one of them is missing little happens."""

    def is_enabled(self, name: str) -> bool:
        return True


class Play(RuleBasedStateMachine):
    def __init__(self, user: Any, walls: list[Wall], patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        all_rules: Any = st.just(AllRules())
        self._rules_strategy.enabled_rules_strategy = all_rules
        self.user, self.patch = user, patch
        self.wall = walls[0] = Wall()
        self.account = Account()
        self.runner = asyncio.Runner()
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()
        self.steps = 0
        #: What people wrote, by conversation.
        self.written: dict[UUID, list[str]] = {}
        self.deleted: set[UUID] = set()
        self.active: list[Run] = []
        #: Who carries a run, as far as the database knows, and who goes on all the same.
        self.carried: dict[UUID, Attempt] = {}
        self.zombies: list[Attempt] = []
        self.attempts: list[Attempt] = []
        #: What an attempt of a run knew of what people said, by its number.
        self.stances: dict[tuple[UUID, int], Stance] = {}
        self.cards: dict[UUID, Card] = {}
        #: Runs whose job was lost.
        self.lost: set[UUID] = set()
        #: What was found wrong where nothing can be raised.
        self.faults: list[str] = []

    @property
    def may_be_disturbed(self) -> bool:
        """Every third step: most steps are to lead somewhere."""
        return self.steps % 3 == 0 and bool(self.written)

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

    @property
    def asking(self) -> list[Run]:
        return [r for r in self.active if r.status == "awaiting_approval"]

    def go(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await work

        return self.runner.run(bounded())

    def look(self) -> None:
        """Processes that ended, by themselves or not, carry nothing any more."""
        self.zombies = [each for each in self.zombies if not each.is_over]
        self.carried = {key: each for key, each in self.carried.items() if not each.is_over}
        self.active = list(Run.objects.filter(status__in=ACTIVE_STATUSES).order_by("created", "id"))


def pick(found: Sequence[T], at: int) -> T:
    return found[at % len(found)]


def log_of(run_id: UUID) -> tuple[LoggedEvent, ...]:
    return event_log.events_after(run_id=run_id, position=event_log.START, limit=10_000)
