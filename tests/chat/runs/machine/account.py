"""What the machine itself knows of what people said: of each call, of tools, how often to be asked.

It is the other side of the comparison, so nothing of the product decides here: what a person is to
be asked about is said again, in the words of the documentation.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from tests.chat.runs.machine.wall import PAINTING, Key, Seen, Wall

Mode = Literal["balanced", "careful"]

CHANGES = ("work", *PAINTING)


@dataclass(frozen=True)
class Word:
    """What a person said of a call, and what they were shown of it."""

    is_yes: bool
    seen: Seen
    is_edited: bool = False
    goes_on: bool = False

    def is_for(self, tool: str, seen: Seen, *, is_changed: bool) -> bool:
        """Whether it is a yes to just this: to the wall as it was, or to the very same lines.

        ``is_changed``: by others than the calls that were approved with this one.
        """
        if not self.is_yes or self.seen.value != seen.value:
            return False
        if tool not in PAINTING or seen.version == self.seen.version:
            return True
        return not self.is_edited and not is_changed and seen.lines == self.seen.lines


@dataclass(frozen=True)
class Rule:
    """A tool not to be asked about, as it was described then: in one conversation, or in all."""

    tool: str
    conversation_id: UUID | None
    is_reworded: bool


@dataclass(frozen=True)
class Stance:
    """What holds for an attempt: what was said about tools until it began."""

    mode: Mode = "balanced"
    rules: frozenset[Rule] = frozenset()
    is_reworded: bool = False

    def asks(self, *, tool: str, conversation_id: UUID | None, is_tainted: bool) -> bool:
        if tool not in CHANGES or is_tainted:
            return tool in CHANGES
        is_reworded = self.is_reworded and tool == "work"
        places = (None, conversation_id)
        if any(Rule(tool, place, is_reworded) in self.rules for place in places):
            return False
        return tool == "paint" or self.mode == "careful"


class Account:
    def __init__(self) -> None:
        self.mode: Mode = "balanced"
        self.rules: dict[tuple[str, UUID | None], Rule] = {}
        #: Of each call the last word that was taken, until it is asked for again.
        self.words: dict[Key, Word] = {}
        self.asked: set[Key] = set()

    def stance(self, wall: Wall) -> Stance:
        return Stance(self.mode, frozenset(self.rules.values()), wall.is_reworded)

    def allow(self, tool: str, conversation_id: UUID | None, wall: Wall) -> None:
        is_reworded = wall.is_reworded and tool == "work"
        self.rules[tool, conversation_id] = Rule(tool, conversation_id, is_reworded)

    def forget(self, conversation_id: UUID) -> None:
        """Rules of a conversation go with it."""
        self.rules = {k: rule for k, rule in self.rules.items() if k[1] != conversation_id}

    def approved(self, keys: Collection[Key]) -> list[Key]:
        return [key for key in keys if key in self.words and self.words[key].is_yes]

    def is_denied(self, keys: Collection[Key]) -> bool:
        """Whether one of these was denied so that nothing behind it runs."""
        words = [self.words[key] for key in keys if key in self.words]
        return any(not word.is_yes and not word.goes_on for word in words)
