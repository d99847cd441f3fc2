from uuid import uuid4

import pytest

from chat.loop.planning import (
    Ask,
    CallModel,
    Finish,
    LastCall,
    RunTool,
    SkipCalls,
    iteration_limit,
    next_step,
    result_bytes,
)
from chat.types import (
    AssistantMessage,
    CallApproved,
    CallDenied,
    Fault,
    PendingCall,
    Progress,
    ToolCall,
    ToolMessage,
    UserMessage,
)

ASKED = (UserMessage("find milk"),)
CALL = ToolCall("call_1", "note_search", "{}")
CALLED = (*ASKED, AssistantMessage("", calls=(CALL,)))
RESULTED = (*CALLED, ToolMessage("call_1", "note_search", "käse"))


def step(progress: Progress, fault: Fault | None = None):
    return next_step(progress, max_iterations=10, fault=fault)


def test_next_step_asks_the_model_in_a_fresh_run():
    assert step(Progress(ASKED)) == CallModel(1)


def test_next_step_asks_again_behind_an_ended_runs_answer():
    assert step(Progress((*ASKED, AssistantMessage("done")))) == CallModel(1)


def test_next_step_runs_open_calls_before_anything_else():
    pending = (PendingCall(CALL, was_running=True), PendingCall(CALL))
    assert step(Progress(CALLED, 10, pending)) == RunTool(pending[0])


def test_next_step_skips_calls_that_the_last_call_made():
    pending = (PendingCall(CALL),)
    progress = Progress(CALLED, 10, pending, last_call_done=True)
    assert step(progress) == SkipCalls(pending, "last_call")


def asked(name, **more):
    return PendingCall(ToolCall(f"call_{name}", name, "{}"), **more)


def wants(call):
    return call.name.startswith("ask")


def decide(*pending, **more):
    progress = Progress(CALLED, 1, pending, **more)
    return next_step(progress, max_iterations=10, asks=wants)


def test_next_step_runs_what_is_allowed_before_it_asks():
    free, first, second = asked("free"), asked("ask1"), asked("ask2")
    assert decide(free, first, second) == RunTool(free)


def test_next_step_asks_about_the_whole_rest_at_once():
    first, free, second = asked("ask1"), asked("free"), asked("ask2")
    assert decide(first, free, second) == Ask((first.call, second.call))


@pytest.mark.parametrize("decision", [CallApproved("{}"), CallDenied(), CallDenied(go_on=True)])
def test_next_step_does_not_ask_again(decision):
    pending = asked("ask", decision=decision)
    assert decide(pending) == RunTool(pending)


def test_next_step_asks_again_where_the_target_changed():
    pending = asked("ask", is_stale=True)
    assert decide(pending) == Ask((pending.call,))


def test_next_step_asks_nothing_about_calls_behind_a_denial():
    first, denied, last = asked("ask1"), asked("ask2", decision=CallDenied()), asked("ask3")
    assert decide(first, denied, last) == Ask((first.call,))
    going_on = asked("ask2", decision=CallDenied(go_on=True))
    assert decide(first, going_on, last) == Ask((first.call, last.call))


def test_next_step_skips_the_rest_after_a_denial_and_ends():
    rest = asked("free")
    assert decide(rest, denied=True) == SkipCalls((rest,), "denied")
    assert step(Progress(RESULTED, 1, denied=True)) == Finish("denied")


def test_next_step_goes_on_after_results_until_the_limit():
    assert step(Progress(RESULTED, 3)) == CallModel(4)
    assert step(Progress(RESULTED, 9)) == CallModel(10)
    assert step(Progress(RESULTED, 10)) == LastCall()


@pytest.mark.parametrize("iterations", [1, 10])
def test_next_step_ends_with_an_answer(iterations):
    progress = Progress((*RESULTED, AssistantMessage("found", provider="p")), iterations)
    assert step(progress) == Finish("end_turn")


def test_next_step_ends_after_the_last_call():
    progress = Progress((*RESULTED, AssistantMessage("")), 10, last_call_done=True)
    assert step(progress) == Finish("max_iterations")


def test_next_step_ends_with_a_fault_whatever_is_open():
    progress = Progress(CALLED, 1, (PendingCall(CALL),), message_id=uuid4())
    assert step(progress, Fault("server_error")) == Finish("error")


@pytest.mark.parametrize(("wanted", "limit"), [(-3, 1), (0, 1), (1, 1), (7, 7), (10, 10), (99, 10)])
def test_iteration_limit_is_clamped(wanted, limit):
    assert iteration_limit(wanted) == limit


def test_result_bytes_counts_the_current_iteration_alone():
    more = (*RESULTED, AssistantMessage("", calls=(CALL,)), ToolMessage("x", "y", "abc"))
    assert result_bytes(Progress(RESULTED)) == len("käse".encode())
    assert result_bytes(Progress(more)) == 3
    assert result_bytes(Progress(CALLED)) == 0
