import asyncio
import contextvars
import json
import logging
import math
import threading
import time
from typing import cast
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.definitions import Outcome, ToolContext, ToolOutput, Touched
from tools.exceptions import ToolError
from tools.invocation import invoke
from tools.policy import Decision, Policy, Verdict
from tools.registry import registry, tool

RUN = UUID("00000000-0000-0000-0000-000000000007")


@pytest.fixture(autouse=True)
def empty_registry():
    with registry.temporarily(alone=True):
        yield


async def call(name: str, arguments: str | None = "{}", *, policy=None, **context) -> Outcome:
    context = {"user_id": 1, "deadline": math.inf, "run_id": RUN, "call_id": "call_1", **context}
    return await invoke(
        name=name,
        arguments=arguments,
        context=ToolContext(**context),
        policy=policy or Policy(),
    )


def echo_tool(**options) -> list[dict]:
    ran: list[dict] = []

    @tool(**{"effect": "read", **options})
    async def echo(context: ToolContext, text: str = "none") -> str:
        """Echo."""
        ran.append({"text": text})
        return text

    return ran


async def test_invoke_returns_what_a_coroutine_tool_returns():
    echo_tool()
    outcome = await call("echo", '{"text": "hello"}')
    assert (outcome.content, outcome.status, outcome.is_error) == ("hello", "done", False)


async def test_invoke_runs_a_synchronous_tool_in_a_thread_with_the_callers_context():
    flavour = contextvars.ContextVar("flavour", default="plain")

    @tool(effect="read")
    def where(context: ToolContext) -> dict[str, object]:
        """Where."""
        return {"thread": threading.current_thread().name, "flavour": flavour.get()}

    flavour.set("caller's")
    found = json.loads((await call("where")).content)
    assert found["thread"] != threading.current_thread().name
    assert found["flavour"] == "caller's"


async def test_invoke_hands_on_the_context():
    seen = []

    @tool(effect="read", deadline=20)
    async def look(context: ToolContext) -> str:
        """Look."""
        seen.append(context)
        return ""

    conversation = uuid4()
    await call("look", conversation_id=conversation, user_id=7)
    (context,) = seen
    assert (context.user_id, context.conversation_id, context.run_id) == (7, conversation, RUN)
    assert 19 < context.seconds_left <= 20


async def test_invoke_never_outlives_the_runs_deadline():
    seen = []

    @tool(effect="read", deadline=20)
    async def look(context: ToolContext) -> str:
        """Look."""
        seen.append(context.seconds_left)
        return ""

    await call("look", deadline=time.monotonic() + 5)
    assert seen[0] <= 5


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_invoke_starts_nothing_when_no_time_is_left(kind):
    ran = []

    def sync(context: ToolContext) -> str:
        """Run."""
        ran.append(1)
        return ""

    async def coroutine(context: ToolContext) -> str:
        """Run."""
        return sync(context)

    function = sync if kind == "sync" else coroutine
    tool(effect="write")(function)
    outcome = await call(function.__name__, deadline=time.monotonic())
    assert "no time is left" in outcome.content
    assert (outcome.status, outcome.is_error, ran) == ("error", True, [])


@pytest.mark.parametrize("arguments", ["", "  \n", "null", " null ", "{}", None])
async def test_invoke_takes_nothing_for_no_arguments(arguments):
    echo_tool()
    assert (await call("echo", arguments)).content == "none"


@pytest.mark.parametrize("arguments", ["[]", '"x"', "5", "true", "[{}]"])
async def test_invoke_refuses_arguments_that_are_no_object(arguments):
    ran = echo_tool()
    outcome = await call("echo", arguments)
    assert "arguments must be an object" in outcome.content
    assert (outcome.status, outcome.is_error, ran) == ("error", True, [])


async def test_invoke_names_tool_position_and_remedy_when_json_does_not_parse():
    ran = echo_tool()
    outcome = await call("echo", '{"title": "A", "content": "unterminated')
    assert outcome.content.startswith("echo was not run")
    assert (
        "Unterminated string starting at line 1 column 27 (character 26 of 39)" in outcome.content
    )
    assert "Call it again" in outcome.content
    assert (outcome.status, outcome.is_error, ran) == ("error", True, [])


async def test_invoke_names_every_field_that_does_not_fit():
    @tool(effect="read")
    async def sample(context: ToolContext, title: str, count: int, folder: str = "/") -> str:
        """Sample."""
        return ""

    outcome = await call("sample", '{"count": "many", "colour": "red"}')
    assert "- title: required" in outcome.content
    assert "- count: Input should be a valid integer" in outcome.content
    assert "- colour: unknown; this tool takes title, count, folder" in outcome.content
    assert "many" not in outcome.content
    assert (outcome.status, outcome.is_error) == ("error", True)


async def test_invoke_lists_the_tools_there_are_when_the_name_is_unknown():
    echo_tool()
    outcome = await call("ecko")
    assert outcome.content == "There is no tool named ecko. Available tools: echo."
    assert (outcome.status, outcome.is_error) == ("error", True)


async def test_invoke_cleans_and_cuts_an_unknown_name():
    outcome = await call("\ud800\0" + "x" * 10_000)
    outcome.content.encode()
    assert "\0" not in outcome.content
    assert len(outcome.content) < 400


@pytest.mark.parametrize(("decision", "words"), [("ask", "approval"), ("off", "switched off")])
async def test_invoke_does_not_run_what_policy_does_not_allow(decision, words):
    ran = echo_tool()
    outcome = await call("echo", policy=Policy(ceiling={"echo": decision}))
    assert (outcome.status, outcome.is_error, ran) == ("skipped", True, [])
    assert words in outcome.content
    assert "NOTEWIRE_TOOL_POLICY" in outcome.content


async def test_invoke_says_how_to_allow_a_call_that_must_be_asked_for():
    echo_tool(effect="external")
    outcome = await call("echo")
    assert "NOTEWIRE_TOOL_POLICY=echo=allow" in outcome.content


class BrokenPolicy(Policy):
    def decide(self, name, effect):
        raise RuntimeError("secret")


class UnknownDecision(Policy):
    def decide(self, name, effect):
        return Verdict(cast(Decision, "perhaps"), "nobody")


@pytest.mark.parametrize("policy", [BrokenPolicy(), UnknownDecision()])
async def test_invoke_never_runs_a_tool_without_a_clear_yes(policy):
    ran = echo_tool()
    outcome = await call("echo", policy=policy)
    assert (outcome.is_error, ran) == (True, [])
    assert "secret" not in outcome.content


async def test_invoke_gives_the_model_a_tool_errors_words():
    @tool(effect="read")
    def fail(context: ToolContext) -> str:
        """Fail."""
        raise ToolError("There is no such note. Search for it first.")

    outcome = await call("fail")
    assert outcome.content == "fail failed: There is no such note. Search for it first."
    assert (outcome.status, outcome.is_error) == ("error", True)


@pytest.mark.parametrize("failure", [ValueError, SystemExit, StopIteration, MemoryError])
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_invoke_logs_a_fault_and_tells_no_internals(caplog, failure, kind):
    def broken(context: ToolContext) -> str:
        """Break."""
        raise failure("postgres://user:secret@host")

    async def broken_async(context: ToolContext) -> str:
        """Break."""
        raise failure("postgres://user:secret@host")

    function = broken if kind == "sync" else broken_async
    tool(effect="read", deadline=5)(function)
    outcome = await call(function.__name__)
    assert (outcome.status, outcome.is_error) == ("error", True)
    assert "secret" not in outcome.content
    (record,) = [record for record in caplog.records if record.name == "tools.invocation"]
    assert record.levelno == logging.ERROR
    assert str(RUN) in record.getMessage()
    assert "secret" in caplog.text


async def test_invoke_cancels_a_coroutine_tool_at_its_deadline():
    ended = asyncio.Event()

    @tool(effect="read", deadline=0.01)
    async def hang(context: ToolContext) -> str:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    outcome = await call("hang")
    assert ended.is_set()
    assert "did not finish within 0.01 s and was cancelled" in outcome.content
    assert (outcome.status, outcome.is_error) == ("error", True)
    assert outcome.duration_ms >= 10


async def test_invoke_says_outcome_unknown_when_a_synchronous_tool_passes_its_deadline():
    go_on, seen = threading.Event(), []

    @tool(effect="write", deadline=0.01)
    def hang(context: ToolContext) -> str:
        """Hang."""
        go_on.wait(10)
        seen.append(context.seconds_left)
        return ""

    outcome = await call("hang")
    go_on.set()
    assert "outcome unknown" in outcome.content
    assert (outcome.status, outcome.is_error) == ("unknown", True)


async def test_invoke_takes_a_tools_own_time_out_for_a_fault():
    @tool(effect="read")
    async def slow(context: ToolContext) -> str:
        """Slow."""
        raise TimeoutError("upstream")

    outcome = await call("slow")
    assert "fault in the server" in outcome.content


async def test_invoke_lets_cancellation_of_its_caller_through():
    started = asyncio.Event()

    @tool(effect="read")
    async def hang(context: ToolContext) -> str:
        """Hang."""
        started.set()
        await asyncio.Event().wait()
        return ""

    task = asyncio.create_task(call("hang"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_invoke_takes_a_tools_own_cancelled_error_for_a_fault():
    @tool(effect="read")
    async def odd(context: ToolContext) -> str:
        """Odd."""
        raise asyncio.CancelledError

    assert (await call("odd")).is_error


async def test_invoke_gives_summary_and_touched_of_an_output():
    touched = Touched(kind="note", id="1", title="Groceries\0")

    @tool(effect="write")
    async def make(context: ToolContext) -> ToolOutput:
        """Make."""
        return ToolOutput({"id": "1"}, summary="Created\0 Groceries", touched=(touched,))

    outcome = await call("make")
    assert outcome.content == '{"id":"1"}'
    assert outcome.summary == "Created Groceries"
    assert outcome.touched == (Touched(kind="note", id="1", title="Groceries"),)


async def test_invoke_writes_compact_json_with_plain_letters():
    @tool(effect="read")
    async def show(context: ToolContext) -> dict[str, object]:
        """Show."""
        return {"id": RUN, "title": "Äpfel \ud800", "tags": ("a\0", 1), "none": None}

    assert (await call("show")).content == (
        '{"id":"00000000-0000-0000-0000-000000000007","title":"Äpfel �","tags":["a",1],"none":null}'
    )


@pytest.mark.parametrize("value", ["", "  "])
async def test_invoke_never_gives_an_empty_result(value):
    @tool(effect="read")
    async def nothing(context: ToolContext) -> str:
        """Nothing."""
        return str(value)

    assert (await call("nothing")).content == "(no output)"


async def test_invoke_caps_a_result_on_a_character_boundary():
    @tool(effect="read")
    async def long(context: ToolContext) -> str:
        """Long."""
        return "ü" * 10_000

    content = (await call("long")).content
    kept, marker = content.split("[", 1)
    assert len(content.encode()) <= 12 * 1024
    assert set(kept) == {"ü"}
    assert marker == f"truncated {20_000 - len(kept.encode())} bytes]"


async def test_invoke_hands_clean_text_to_the_tool():
    ran = echo_tool()
    await call("echo", '{"text": "a\\u0000b\\ud83d c \\ud83d\\ude00"}')
    assert ran == [{"text": "ab� c 😀"}]


@given(arguments=st.text() | st.text('{}[]":,tex0\\u\0\ud800 '))
async def test_invoke_gives_an_outcome_for_any_arguments(arguments):
    with registry.temporarily(alone=True):
        echo_tool()
        outcome = await call("echo", arguments)
    outcome.content.encode()
    assert "\0" not in outcome.content
    assert outcome.is_error == (outcome.status != "done")
