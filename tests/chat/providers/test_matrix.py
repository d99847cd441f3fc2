"""The story against servers of other people's making, which know nothing of Notewire.

They come with ``requirements/matrix.txt``; without it these tests are skipped.
"""

import math
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from chat.exceptions import ProviderError
from chat.loop.run_loop import Limits, LoopEnded, run_loop
from chat.providers.catalogue import PROVIDERS, Catalogue, ResolvedModel
from chat.providers.http import Endpoint, Upstream, build_client
from chat.providers.openai import OpenAIProvider
from chat.types import CallOutcome, Completion, ModelRequest, Progress, UserMessage
from tools.definitions import ToolContext
from tools.invocation import invoke
from tools.policy import Policy
from tools.registry import registry

pytest.importorskip("fakellm", reason="needs requirements/matrix.txt")
pytest.importorskip("llmock", reason="needs requirements/matrix.txt")
pytestmark = pytest.mark.matrix

STORY = "make a note called Groceries with milk and eggs, then find it"


@contextmanager
def serving(name, *arguments, health):
    """A foreign server in a process of its own; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name(name)), "serve", "--port", str(port), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                httpx.get(url + health, timeout=5)
                break
            except httpx.TransportError:
                assert process.poll() is None, f"{name} did not start"
                assert time.monotonic() < deadline, f"{name} does not answer"
                time.sleep(0.05)
        yield url
    finally:
        process.kill()
        process.wait(10)


@pytest.fixture(scope="module")
def fakellm():
    rules = Path(__file__).with_name("fakellm.yaml")
    with serving("fakellm", "--config", str(rules), health="/_fakellm/stats") as url:
        yield url


@pytest.fixture(scope="module")
def llmock():
    with serving("llmock", health="/health") as url:
        yield url


@pytest.fixture
async def catalogue(client):
    return Catalogue(client)


async def play(chosen, user):
    """The story with the real tools: the calls made, the results, the end and the last text."""
    calls, results = [], []

    async def call_tool(call):
        context = ToolContext(user_id=user.pk, deadline=math.inf)
        outcome = await invoke(
            name=call.name, arguments=call.arguments, context=context, policy=Policy()
        )
        calls.append(call.name)
        results.append(outcome)
        return CallOutcome(outcome.content, is_error=outcome.is_error)

    events: list[Any] = []
    async for batch in run_loop(
        provider=chosen.provider,
        model=chosen.model,
        system="You keep notes.",
        progress=Progress(history=(UserMessage(STORY),)),
        invoke=call_tool,
        tools=registry.definitions(),
        limits=Limits(),
        repeatable=lambda name: False,
        used_ids=frozenset(),
    ):
        events += batch
    *_, ended = events
    assert isinstance(ended, LoopEnded)
    text = "".join(event.text for event in events if getattr(event, "name", "") == "text_delta")
    return calls, results, ended.reason, text


async def test_fakellm_plays_the_story(fakellm, catalogue, settings, user, units):
    settings.OPENAI_BASE_URL = f"{fakellm}/v1"
    calls, results, reason, text = await play(await catalogue.resolve(), user)
    assert (calls, reason) == (["note_create", "note_search"], "end_turn")
    assert not any(result.is_error for result in results)
    assert "Groceries" in results[1].content
    assert text == "Done: **Groceries** holds milk and eggs, and a search finds it."


@pytest.mark.parametrize(
    ("variable", "path"), [("OPENAI_BASE_URL", "/v1"), ("LLAMACPP_BASE_URL", "")]
)
async def test_llmock_calls_an_offered_tool_and_answers(
    llmock, catalogue, settings, user, units, variable, path
):
    setattr(settings, variable, llmock + path)
    calls, results, reason, text = await play(await catalogue.resolve(), user)
    assert (len(calls), reason, bool(text)) == (1, "end_turn", True)
    assert not results[0].is_error


@pytest.mark.parametrize(
    ("name", "path"), [("mistral", "/mistral/v1"), ("groq", "/groq/openai/v1")]
)
async def test_llmock_accepts_the_requests_of_a_dialect(llmock, user, units, name, path):
    (row,) = (row for row in PROVIDERS if row.name == name)
    endpoint = Endpoint(name=name, label=row.label, base_url=llmock + path, key="k")
    async with build_client() as client:
        provider = OpenAIProvider(Upstream(client, endpoint), quirks=row.quirks)
        calls, results, reason, text = await play(ResolvedModel(provider, "m"), user)
    assert (len(calls), reason, bool(text)) == (1, "end_turn", True)


FAULTS = {
    "limited": ({"type": "fail", "status": 429, "retry_after": 0.1, "times": 2}, None),
    "unavailable": ({"type": "fail", "status": 503, "times": 1}, None),
    "unauthorised": ({"type": "fail", "status": 401, "times": 1}, 401),
    "refused": ({"type": "fail", "status": 400, "times": 1}, 400),
    "cut": ({"type": "stream_fault", "kind": "truncate", "after_chunks": 2}, "stream_incomplete"),
    "lost": ({"type": "stream_fault", "kind": "disconnect", "after_chunks": 2}, "connection_lost"),
    "broken": (
        {"type": "stream_fault", "kind": "malformed", "after_chunks": 2},
        "stream_malformed",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_llmock_finds_no_fault_in_how_failures_are_met(llmock, catalogue, settings, fault):
    behaviour, expected = FAULTS[fault]
    admin(llmock, "reset", {})
    admin(llmock, "scenario", {"behaviors": [behaviour]})
    settings.OPENAI_BASE_URL = f"{llmock}/v1"
    chosen = await catalogue.resolve("openai/gpt-4o")
    request = ModelRequest(chosen.model, (UserMessage("hello"),))
    try:
        deltas = [d async for batch in chosen.provider.stream(request) for d in batch]
    except ProviderError as error:
        assert error.fault.status == expected
    else:
        last = deltas[-1]
        assert isinstance(last, Completion)
        assert (last.fault and last.fault.type) == expected
    if not isinstance(expected, str):
        # A stream that broke counts as mishandled there unless it is asked for again, which
        # would say the beginning of the answer twice.
        assert admin(llmock, "verdict")["findings"] == []


def admin(url, path, body=None):
    method = "GET" if body is None else "POST"
    return httpx.request(method, f"{url}/_llmock/{path}", json=body, timeout=10).json()
