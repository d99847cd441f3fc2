"""A person's word opens exactly what it was given for."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.approval import Approved, call_digest, canonical, tool_digest
from tools.definitions import Preview, ToolContext
from tools.exceptions import ToolError
from tools.invocation import Described, describe, invoke, must_ask
from tools.policy import Policy
from tools.registry import registry, tool

ASKING = Policy(ceiling={"write": "ask"})
OFF = Policy(ceiling={"write": "off"})


@pytest.fixture
def ran():
    """What the tool ``paint`` was called with."""
    seen: list[tuple[str, str]] = []

    def preview(context: ToolContext, colour: str) -> Preview:
        if colour == "none":
            raise ToolError("there is no such colour")
        if colour == "bug":
            raise RuntimeError("a bug")
        return Preview(f"Paint it {colour}.", version="3")

    with registry.temporarily(alone=True):

        @tool(effect="write", preview=preview)
        async def paint(context: ToolContext, colour: str) -> str:
            """Paint."""
            seen.append((colour, context.approved_version))
            return "painted"

        yield seen


def context() -> ToolContext:
    return ToolContext(user_id=1, deadline=time.monotonic() + 10)


def shown(arguments: str, policy=ASKING):
    return describe(name="paint", arguments=arguments, context=context(), policy=policy)


async def carried(arguments: str, approved: Approved | None, policy=ASKING):
    return await invoke(
        name="paint", arguments=arguments, context=context(), policy=policy, approved=approved
    )


def approval(arguments='{"colour": "red"}') -> Approved:
    found = shown(arguments)
    assert isinstance(found, Described)
    return Approved(found.digest, found.preview.version)


async def test_approved_call_runs_and_knows_the_version_that_was_approved(ran):
    outcome = await carried('{ "colour" : "red" }', approval())
    assert (outcome.status, ran) == ("done", [("red", "3")])


async def test_approved_call_is_bound_to_its_version_also_where_a_rule_allows_it_by_now(ran):
    word = approval()
    outcome = await carried('{"colour": "red"}', word, Policy(rules={"paint": "allow"}))
    assert (outcome.status, ran) == ("done", [("red", "3")])


@pytest.mark.parametrize(
    ("arguments", "change"),
    [
        ('{"colour": "blue"}', {}),
        ('{"colour": "red"}', {"version": "4"}),
        ('{"colour": "red"}', {"digest": ""}),
    ],
)
async def test_word_opens_nothing_else(ran, arguments, change):
    outcome = await carried(arguments, replace(approval(), **change))
    assert (outcome.status, ran) == ("skipped", [])


async def test_word_opens_nothing_that_is_switched_off(ran):
    outcome = await carried('{"colour": "red"}', approval(), OFF)
    assert (outcome.status, ran) == ("skipped", [])


@pytest.mark.parametrize("arguments", ["[]", '{"colour": 1}', '{"a": 1}', '{"colour": "a'])
def test_must_ask_leaves_a_call_that_fails_anyway(ran, arguments):
    assert not must_ask(name="paint", arguments=arguments, policy=ASKING)
    assert must_ask(name="paint", arguments='{"colour": "red"}', policy=ASKING)
    assert not must_ask(name="paint", arguments='{"colour": "red"}', policy=Policy())
    assert not must_ask(name="nothing", arguments="{}", policy=ASKING)


@pytest.mark.parametrize(("colour", "words"), [("none", "no such colour"), ("bug", "fault in the")])
def test_describe_makes_an_error_of_what_cannot_be_shown(ran, colour, words):
    found = shown(f'{{"colour": "{colour}"}}')
    assert not isinstance(found, Described)
    assert (found.is_error, words in found.content) == (True, True)


def test_describe_says_why_it_is_asked_and_whether_a_rule_would_end_that(ran):
    by_operator = shown('{"colour": "red"}')
    careful = shown('{"colour": "red"}', Policy(mode="careful"))
    tainted = shown('{"colour": "red"}', Policy(tainted=True))
    assert "NOTEWIRE_TOOL_POLICY" in by_operator.because
    assert not by_operator.can_be_allowed
    assert ("careful" in careful.because, careful.can_be_allowed) == (True, True)
    assert ("outside" in tainted.because, tainted.can_be_allowed) == (True, False)


texts = st.text(max_size=5)
values = st.dictionaries(texts, st.integers() | texts | st.lists(texts, max_size=2), max_size=3)


@given(values, values, texts, texts)
def test_digest_is_of_the_whole_call(some, others, version, later):
    def digest(arguments, version):
        return call_digest(tool="paint", arguments=arguments, version=version)

    backwards = dict(reversed(list(some.items())))
    assert digest(some, version) == digest(backwards, version)
    same = (canonical(some), version) == (canonical(others), later)
    assert (digest(some, version) == digest(others, later)) == same


def test_tool_digest_changes_with_what_a_person_knew_of_it(ran):
    paint = registry.get("paint")
    assert paint is not None
    others = [
        replace(paint, effect="external"),
        replace(paint, spec=replace(paint.spec, description="Paint it all.")),
        replace(paint, spec=replace(paint.spec, parameters={"type": "object"})),
        replace(paint, origin="elsewhere.paint (/x.py:1)"),
    ]
    moved = replace(paint, origin=f"{paint.source} (/elsewhere.py:99)")
    assert tool_digest(moved) == tool_digest(paint)
    assert len({tool_digest(each) for each in [paint, *others]}) == 5
