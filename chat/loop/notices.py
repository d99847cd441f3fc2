"""The loop's own words: notices for the person, results and one nudge for the model.

Codes are stable; ``docs/events.md`` lists them.
"""

from __future__ import annotations

from chat.events import Notice
from chat.loop.repair import Repair, Repaired
from chat.loop.window import Window
from chat.types import CallApproved, CallDenied, Completion, FinishReason

NUDGE = (
    "You announced a tool call but sent none. Send the call now, or answer without tools if you "
    "have what you need."
)
SKIPPED = (
    "Not run: the iterations of this run are used up and no more tools may be called. "
    "The person can continue with a new run."
)
UNKNOWN = (
    "Outcome unknown, not repeated: the server stopped while this call was running, so it may or "
    "may not have taken effect. Check the present state before you call it again."
)
TRUNCATED = (
    "Not run: your answer was cut off by its output limit, and the arguments of this call are "
    "incomplete. Send the call again with shorter arguments, or split it into several calls."
)

AFTER_DENIAL = "Not run: an earlier call was denied by the person."
_ARGUMENTS_SHOWN = 2_000

#: Repairs that a person should know of; the others only tidy.
_TOLD: frozenset[Repair] = frozenset({"orphan_result_dropped", "missing_result_filled"})

CUT: dict[FinishReason, Notice] = {
    "max_tokens": Notice(
        code="max_tokens",
        text="The model reached its output limit: this answer may be cut off.",
    ),
    "refusal": Notice(code="refusal", text="The model or its provider declined to answer further."),
    "context_window": Notice(
        code="context_window",
        text="The conversation is too long for this model: this answer may be cut off.",
    ),
    "pause_turn": Notice(
        code="pause_turn", text="The provider paused the answer. Continue to carry it on."
    ),
}


def denied(decision: CallDenied) -> str:
    """The result of a call that a person denied, as the model reads it."""
    said = f"Denied by the person: {decision.reason}" if decision.reason else "Denied by the person"
    said = said if said.endswith((".", "!", "?", "…")) else f"{said}."
    if decision.go_on:
        return f"{said}\nDo not repeat the call. Go on without it, or in another way."
    return said


def edited(decision: CallApproved) -> str:
    """What goes before the result of a call that ran with other arguments than the model's."""
    shown = decision.arguments[:_ARGUMENTS_SHOWN]
    cut = "…" if shown != decision.arguments else ""
    return f"The person changed the arguments of this call; it ran with {shown}{cut}"


def nudged() -> Notice:
    return Notice(
        code="nudged", text="The model announced a tool call but sent none; it was asked again."
    )


def of_history(repaired: Repaired, window: Window) -> tuple[Notice, ...]:
    """What the model is not shown as it was."""
    found = []
    if _TOLD.intersection(repaired.repairs):
        text = "Tool calls without a matching result were repaired before the model was asked."
        found.append(Notice(code="history_repaired", text=text))
    if window.dropped_turns or window.shortened:
        text = "The conversation is longer than the model is shown: its oldest parts were left out."
        found.append(Notice(code="history_trimmed", text=text))
    return tuple(found)


def of_answer(completion: Completion, *, last_call: bool) -> tuple[Notice, ...]:
    """What a person should know of a run's final message."""
    if completion.refusal:
        return (Notice(code="refusal", text=completion.refusal),)
    if cut := CUT.get(completion.finish_reason):
        return (cut,)
    if completion.finish_reason == "tool_use":
        text = "The model announced a tool call but sent none."
        return (Notice(code="call_missing", text=text),)
    if completion.text.strip():
        return ()
    if last_call:
        text = (
            "The iterations of this run are used up, and the model gave no closing answer. "
            "Continue to let it go on."
        )
        return (Notice(code="max_iterations", text=text),)
    return (Notice(code="empty_answer", text="The model gave an empty answer."),)
