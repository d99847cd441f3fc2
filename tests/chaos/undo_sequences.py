"""Random sequences of an assistant's changes, a person's edits and undos: undo is the inverse.

    .venv/bin/python -m tests.chaos.undo_sequences --sequences 10000

Makes a database of its own on the embedded server of the tests. After every step each note must be
what the changes that are left make of it, and every undo must name exactly what it took back and
what it left. Prints what it counted and fails on any violation.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from typing import Any

LONGEST = 14


def sequence(seed: int) -> list[tuple[str, Any, int]]:
    """Steps as ``tests.notes.test_undo.Play`` takes them."""
    chance = random.Random(seed)
    return [(*_step(chance), chance.randrange(10)) for _ in range(chance.randint(1, LONGEST))]


def _step(chance: random.Random) -> tuple[str, Any]:
    match chance.randrange(8):
        case 0 | 1:
            return "undo", chance.choice(["run 0", "run 1", "call"])
        case 2:
            return "person", ("note_restore", {})
        case 3:
            return "minute passes", ""
        case _:
            return chance.choice(["person", "run 0", "run 1"]), _change(chance)


def _change(chance: random.Random) -> tuple[str, dict[str, Any]]:
    texts = ["", "a", "b", "milk\n", "long " * 20]
    match chance.randrange(6):
        case 0:
            return "note_create", {"content": "new"}
        case 1:
            return "note_delete", {}
        case 2:
            return "note_edit", {
                "old_text": chance.choice(texts),
                "new_text": chance.choice(texts),
            }
        case _:
            fields = {
                "title": chance.choice(texts),
                "content": chance.choice(texts),
                "folder": chance.choice(["/", "/a/"]),
                "tags": chance.choice([[], ["x"], ["x", "y"]]),
                "mode": chance.choice(["replace", "append", "prepend"]),
            }
            return "note_update", dict(chance.sample(sorted(fields.items()), 3))


def play(seed: int, counts: Counter[str]) -> None:
    from accounts.models import User
    from tests.notes.test_undo import Play, state

    game = Play(User.objects.create_user("ada"))
    for who, what, which in sequence(seed):
        game.take(who, what, which)
        counts[who if who != "undo" else f"undo {what}"] += 1
        for note_id, layers in game.layers.items():
            assert state(note_id) == layers[-1][2], f"seed {seed}: {note_id} after {who} {what}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1800)
    asked = parser.parse_args()
    from django.db import connections, transaction
    from django.test.utils import setup_databases, teardown_databases

    import tests.chaos.worker  # noqa: F401 - sets Django up

    counts: Counter[str] = Counter()
    deadline = time.monotonic() + asked.seconds
    connections["default"].settings_dict["TEST"]["NAME"] = "undo_sequences"
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        for seed in range(asked.seed, asked.seed + asked.sequences):
            if time.monotonic() > deadline:
                break
            with transaction.atomic():
                play(seed, counts)
                transaction.set_rollback(True)
            counts["sequences"] += 1
    finally:
        connections.close_all()
        teardown_databases(databases, verbosity=0)
    print(dict(counts))  # noqa: T201
    if counts["sequences"] < asked.sequences:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
