"""The single point at which every tool call of every door is dispatched.

``invoke`` reads the arguments, asks the policy, runs the tool within its deadline and makes an
``Outcome`` of whatever happened: it never raises, but for the cancellation of its caller. Where a
person can be asked, ``must_ask`` says whether to, ``describe`` what to show them, and what they
approved comes back to ``invoke``, which runs exactly that. What a call's row and events look like
belongs to whoever calls it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tools.approval import Approved, call_digest
from tools.arguments import parse_arguments
from tools.definitions import Effect, Outcome, Preview, ToolContext, ToolOutput, Touched
from tools.exceptions import ToolError
from tools.policy import SETTING, Policy, Verdict
from tools.registry import Tool, registry
from tools.text import capped, clean, compact_json
from tools.threads import tool_thread

SHOWN_LENGTH = 200

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Described:
    """A call as it is put to a person. ``can_be_allowed``: a rule would end the asking."""

    arguments: Mapping[str, Any]
    preview: Preview
    digest: str
    effect: Effect
    because: str
    can_be_allowed: bool


async def invoke(
    *,
    name: str,
    arguments: str | None,
    context: ToolContext,
    policy: Policy,
    approved: Approved | None = None,
) -> Outcome:
    """Carry out one call: ``arguments`` is the text as the model sent it, or a person changed it.

    ``approved`` is a person's yes; it opens nothing but what its digest was made of.
    """
    began = time.monotonic()
    try:
        outcome = await _dispatch(name, arguments, context, policy, approved)
    except ToolError as error:
        outcome = _error(f"{_shown(name)} failed: {error}")
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        outcome = _internal_error(name, context)
    # An outermost edge: whatever a tool raises, the run goes on. SystemExit would end the server.
    except (Exception, SystemExit):  # noqa: BLE001
        outcome = _internal_error(name, context)
    return replace(outcome, duration_ms=round((time.monotonic() - began) * 1000))


def must_ask(*, name: str, arguments: str | None, policy: Policy) -> bool:
    """Whether a person is to be asked before this call; not where it would fail anyway."""
    tool = registry.get(name)
    if tool is None:
        return False
    try:
        tool.signature.bind(parse_arguments(arguments))
        return policy.decide(tool.name, tool.effect).decision == "ask"
    except ToolError:
        return False
    # An outermost edge: ``invoke`` meets the same fault, and makes it the call's result.
    except Exception:
        logger.exception("Whether to ask about %s could not be decided", name)
        return False


def describe(
    *, name: str, arguments: str | None, context: ToolContext, policy: Policy
) -> Described | Outcome:
    """A call as a person is asked about it, or the error that it ends in without being asked for.

    To be called in a thread, within the context's deadline; changes nothing.
    """
    tool = registry.get(name)
    if tool is None:
        return _error(f"There is no tool named {_shown(name)} any more.")
    try:
        return _described(tool, parse_arguments(arguments), context, policy)
    except ToolError as error:
        return _error(f"{_shown(name)} failed: {error}")
    # An outermost edge: what cannot be shown to a person is not run.
    except Exception:  # noqa: BLE001
        return _internal_error(name, context)


def _described(
    tool: Tool, arguments: Mapping[str, Any], context: ToolContext, policy: Policy
) -> Described:
    bound = tool.signature.bind(arguments)
    preview = Preview(f"Run {tool.name}.")
    if tool.preview is not None:
        preview = tool.preview(context, **bound)
    return Described(
        arguments=arguments,
        preview=preview,
        digest=call_digest(tool=tool.name, arguments=arguments, version=preview.version),
        effect=tool.effect,
        because=policy.decide(tool.name, tool.effect).reason,
        can_be_allowed=policy.can_be_allowed(tool.name, tool.effect),
    )


async def _dispatch(
    name: str,
    arguments: str | None,
    context: ToolContext,
    policy: Policy,
    approved: Approved | None,
) -> Outcome:
    tool = registry.get(name)
    if tool is None:
        available = ", ".join(spec.name for spec in registry.definitions(policy)) or "none"
        return _error(f"There is no tool named {_shown(name)}. Available tools: {available}.")
    try:
        parsed = parse_arguments(arguments)
        bound = tool.signature.bind(parsed)
    except ToolError as error:
        return _error(
            f"{name} was not run: {error}\n"
            "Call it again with one JSON object that matches the tool's parameters."
        )
    verdict = policy.decide(tool.name, tool.effect)
    # Also where a rule allows it by now: what was approved is a change of that version.
    if verdict.decision != "off" and approved is not None:
        digest = call_digest(tool=tool.name, arguments=parsed, version=approved.version)
        if digest == approved.digest:
            context = replace(context, approved_version=approved.version)
            return await _run(tool, bound, context)
    if verdict.decision != "allow":
        return _not_run(tool, verdict)
    return await _run(tool, bound, context)


async def _run(tool: Tool, bound: Mapping[str, Any], context: ToolContext) -> Outcome:
    seconds = min(tool.deadline, context.seconds_left)
    if seconds <= 0:
        return _error(f"{tool.name} was not run: no time is left in this run.")
    context = replace(context, deadline=time.monotonic() + seconds)
    is_async = inspect.iscoroutinefunction(tool.implementation)
    try:
        async with asyncio.timeout(seconds) as scope:
            if is_async:
                output = await tool.implementation(context, **bound)
            else:
                output = await tool_thread(tool.implementation, context, **bound)
    except TimeoutError:
        if not scope.expired():
            raise
        return _timed_out(tool, seconds, is_async=is_async)
    outcome = _result(output if isinstance(output, ToolOutput) else ToolOutput(output))
    return replace(outcome, from_outside=outcome.from_outside or tool.effect == "external")


def _timed_out(tool: Tool, seconds: float, *, is_async: bool) -> Outcome:
    if not is_async:
        return _error(
            f"{tool.name} did not finish within {seconds:g} s: outcome unknown. It may still take "
            "effect. Look at the present state before you call it again.",
            status="unknown",
        )
    advice = "Try something smaller."
    if tool.effect != "read":
        advice = "It may have taken effect in part: look at the present state before a new call."
    return _error(f"{tool.name} did not finish within {seconds:g} s and was cancelled. {advice}")


def _not_run(tool: Tool, verdict: Verdict) -> Outcome:
    if verdict.decision == "off":
        text = (
            f"{tool.name} was not run: it is switched off by {verdict.reason}. "
            "Go on without it and say so."
        )
    else:
        text = (
            f"{tool.name} was not run: it needs a person's approval ({verdict.reason}), and nobody "
            f"can be asked here. An operator can allow it with {SETTING}={tool.name}=allow. "
            "Say so, and do not call it again now."
        )
    return _error(text, status="skipped")


def _result(output: ToolOutput) -> Outcome:
    content = output.content
    text = clean(content) if isinstance(content, str) else compact_json(content)
    touched = tuple(
        Touched(kind=clean(item.kind), id=clean(str(item.id)), title=_shown(item.title))
        for item in output.touched
    )
    # Some providers refuse a result without text.
    return Outcome(
        content=capped(text) if text.strip() else "(no output)",
        summary=_shown(output.summary),
        touched=touched,
        from_outside=output.from_outside,
    )


def _error(text: str, status: Literal["error", "skipped", "unknown"] = "error") -> Outcome:
    return Outcome(content=capped(clean(text)), status=status, is_error=True)


def _internal_error(name: str, context: ToolContext) -> Outcome:
    logger.exception("Tool %s failed in run %s, call %s", name, context.run_id, context.call_id)
    return _error(
        f"{_shown(name)} failed because of a fault in the server, which was logged. "
        "Look at the present state before you call it again."
    )


def _shown(text: str) -> str:
    return clean(text)[:SHOWN_LENGTH]
