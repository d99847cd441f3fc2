"""Whether a call runs: the one place that decides, from values that others load.

``decide`` is pure. The operator's word (``NOTEWIRE_TOOL_POLICY``) is default and ceiling in one:
an assistant and a person's rules can tighten it, never loosen it. Where the operator says nothing,
the default of effect and mode holds, and there a person's rule may also turn "ask" into "allow".
What was read from outside taints a conversation: there, changes are asked for whatever a rule says,
and so they are where the operator wants it (``NOTEWIRE_APPROVAL_MODE``).
Which results those are, the tools say themselves (``ToolOutput.from_outside``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from tools.definitions import Effect

Decision = Literal["allow", "ask", "off"]
#: How often a person wants to be asked: of every change, or of what cannot be undone.
Mode = Literal["careful", "balanced"]
#: Decisions by tool name or by effect; the name wins.
Decisions: TypeAlias = Mapping[str, Decision]

EFFECTS: tuple[Effect, ...] = get_args(Effect)
DECISIONS: tuple[Decision, ...] = get_args(Decision)
MODES: tuple[Mode, ...] = get_args(Mode)
DEFAULTS: Mapping[Effect, Decision] = {"read": "allow", "write": "allow", "external": "ask"}
SETTING = "NOTEWIRE_TOOL_POLICY"
CAREFUL = "in careful mode every change is asked for"
MODE_SETTING = "NOTEWIRE_APPROVAL_MODE"
BY_OPERATOR = f"the operator's setting {MODE_SETTING}"
TAINTED = "this conversation holds text from outside"


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    reason: str


@dataclass(frozen=True, slots=True)
class Policy:
    """What was said about tools, by whom; enough to decide on every call of one run."""

    ceiling: Decisions = field(default_factory=dict)
    assistant: Decisions = field(default_factory=dict)
    rules: Decisions = field(default_factory=dict)
    mode: Mode = "balanced"
    #: The operator wants every change asked for: unlike a person's own mode, no rule loosens it.
    careful: bool = False
    tainted: bool = False

    def decide(self, name: str, effect: Effect) -> Verdict:
        return decide(
            name=name,
            effect=effect,
            ceiling=self.ceiling,
            assistant=self.assistant,
            rules=self.rules,
            mode=self.mode,
            careful=self.careful,
            tainted=self.tainted,
        )

    def can_be_allowed(self, name: str, effect: Effect) -> bool:
        """Whether a rule of the person's own would end the asking."""
        ruled = replace(self, rules={**self.rules, name: "allow"})
        return ruled.decide(name, effect).decision == "allow"


def decide(
    *,
    name: str,
    effect: Effect,
    ceiling: Decisions,
    assistant: Decisions,
    rules: Decisions,
    mode: Mode = "balanced",
    careful: bool = False,
    tainted: bool = False,
) -> Verdict:
    operator = _said(ceiling, name, effect)
    if operator is None:
        verdict = Verdict(DEFAULTS[effect], f"the default for tools with the effect {effect}")
    else:
        verdict = Verdict(operator, f"the operator's setting {SETTING}")
    changes = effect != "read"
    verdict = _tightened(verdict, "ask" if changes and mode == "careful" else None, CAREFUL)
    rule = rules.get(name)
    if verdict.decision == "ask" and rule == "allow" and operator in (None, "allow"):
        verdict = Verdict("allow", "the person's own rule")
    verdict = _tightened(verdict, _said(assistant, name, effect), "this assistant's settings")
    verdict = _tightened(verdict, rule, "the person's own rule")
    verdict = _tightened(verdict, "ask" if changes and careful else None, BY_OPERATOR)
    return _tightened(verdict, "ask" if changes and tainted else None, TAINTED)


def _said(decisions: Decisions, name: str, effect: Effect) -> Decision | None:
    return decisions.get(name, decisions.get(effect))


def _tightened(verdict: Verdict, decision: Decision | None, reason: str) -> Verdict:
    if decision is None or DECISIONS.index(decision) <= DECISIONS.index(verdict.decision):
        return verdict
    return Verdict(decision, reason)


def operator_policy() -> Policy:
    """The policy that ``NOTEWIRE_TOOL_POLICY`` and ``NOTEWIRE_APPROVAL_MODE`` state."""
    return Policy(
        ceiling=parse_policy(getattr(settings, SETTING, "")),
        careful=getattr(settings, MODE_SETTING, "") == "careful",
    )


def parse_policy(value: str | Mapping[str, str]) -> dict[str, Decision]:
    """``"note_update=ask,external=off"``, or the same as a mapping.

    Raises ``ImproperlyConfigured`` for what is neither; that each name is a tool's or an effect's
    is seen to by a system check, once all tools are registered.
    """
    entries = value.split(",") if isinstance(value, str) else [f"{k}={v}" for k, v in value.items()]
    policy: dict[str, Decision] = {}
    for entry in filter(None, map(str.strip, entries)):
        name, _, word = (part.strip() for part in entry.partition("="))
        decision = next((known for known in DECISIONS if known == word.lower()), None)
        if not name or decision is None:
            raise ImproperlyConfigured(
                f"{SETTING}: {entry!r} is not of the form name=allow, name=ask or name=off."
            )
        if name in policy:
            raise ImproperlyConfigured(f"{SETTING}: {name!r} comes twice.")
        policy[name] = decision
    return policy
