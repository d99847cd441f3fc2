"""Approvals on real servers: decided elsewhere, after a restart, twice at once, under listeners."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import httpx
import pytest
from django.db import connections

from accounts.services import token_create
from chat.exceptions import ApprovalClosedError
from chat.models import Approval, Run, ToolCall
from chat.providers.catalogue import Catalogue, ResolvedModel
from chat.runs import event_log, runtime
from chat.runs.deciding import approval_decide
from chat.runs.lifecycle import run_stop
from chat.runs.runtime import Runtime
from chat.testing import ScriptedProvider, calls, says
from tests.chat.wire.parser import parse
from tests.conftest import _Running
from tools.threads import unit_of_work

CLICKS = 8


@pytest.fixture
def asking(monkeypatch, lamp):
    """Whatever is asked for, a model that wants the lamp red, then is content."""

    async def resolve(self, reference=None):
        return ResolvedModel(Content(), "m")

    monkeypatch.setattr(Catalogue, "resolve", resolve)
    return lamp


class Content(ScriptedProvider):
    """Content once there is a result, in whatever process it is asked again."""

    def __init__(self) -> None:
        super().__init__(calls(("lamp_set", {"colour": "red"})), says("Done."))

    async def stream(self, request):
        has_result = any(hasattr(message, "call_id") for message in request.messages)
        self.requests += [request] * has_result
        async for batch in super().stream(request):
            yield batch


@pytest.fixture
def bearer(user):
    _, secret = token_create(owner=user, name="t", scopes=["read", "write", "chat", "approve"])
    return {"Authorization": f"Bearer {secret}"}


def begin(url: str, bearer) -> dict:
    """Start a run and come back when it waits for a person."""
    response = httpx.post(
        f"{url}/api/completions/",
        json={"content": "Red.", "stream": False},
        headers=bearer,
        timeout=30,
    )
    assert response.status_code == 202, response.text
    body: dict = response.json()
    return body


def ended(run_id: str, seconds: float = 20) -> Run:
    """The run, once it is over."""
    until = time.monotonic() + seconds
    while (run := Run.objects.get(id=run_id)).is_active:
        assert time.monotonic() < until, run.status
    return run


def at_once(*works):
    """What several threads get that begin at one moment: a value or what was raised."""
    barrier = threading.Barrier(len(works))

    def one(work):
        barrier.wait()
        try:
            return work()
        except ApprovalClosedError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(one, works))


def test_body_says_what_waits_and_a_token_with_the_scope_decides(server, bearer, asking):
    body = begin(server.url, bearer)
    assert asking.set == []
    [approval] = body["approvals"]
    assert (body["status"], approval["arguments"]) == ("awaiting_approval", {"colour": "red"})
    url = f"{server.url}/api/approvals/{approval['id']}/"
    word = {"decision": "approve"}
    assert httpx.post(url, json=word, headers=bearer, timeout=30).status_code == 200
    assert ended(body["run"]).stop_reason == "end_turn"
    assert asking.set == ["red"]


def test_same_decision_at_once_runs_the_call_once(server, bearer, asking, user):
    body = begin(server.url, bearer)
    approval_id = UUID(body["approvals"][0]["id"])

    def approve():
        return approval_decide(owner=user, approval_id=approval_id, decision="approved")

    found = at_once(*[approve] * CLICKS)
    assert [each.decision for each in found] == ["approved"] * CLICKS
    assert ended(body["run"]).stop_reason == "end_turn"
    assert asking.set == ["red"]


def test_of_different_decisions_at_once_exactly_one_is_taken(server, bearer, asking, user):
    body = begin(server.url, bearer)
    approval_id = UUID(body["approvals"][0]["id"])

    def decide(decision):
        return lambda: approval_decide(owner=user, approval_id=approval_id, decision=decision)

    found = at_once(*[decide("approved"), decide("denied")] * (CLICKS // 2))
    taken = {each.decision for each in found if isinstance(each, Approval)}
    assert len(taken) == 1
    assert sum(isinstance(each, ApprovalClosedError) for each in found) == CLICKS // 2
    assert ended(body["run"]).stop_reason == ("end_turn" if taken == {"approved"} else "denied")
    assert asking.set == (["red"] if taken == {"approved"} else [])


def test_decision_and_stop_at_once_end_soundly(server, bearer, asking, user):
    body = begin(server.url, bearer)
    approval_id, run_id = UUID(body["approvals"][0]["id"]), UUID(body["run"])
    at_once(
        lambda: approval_decide(owner=user, approval_id=approval_id, decision="approved"),
        lambda: run_stop(owner=user, run_id=run_id),
    )
    run = ended(body["run"])
    assert run.stop_reason == "stopped"
    assert ToolCall.objects.get().status in ("skipped", "done", "unknown")
    assert not Approval.objects.filter(decision="").exists()


def test_new_message_and_decision_at_once_leave_one_run_going(server, bearer, asking, user):
    body = begin(server.url, bearer)
    run = Run.objects.get(id=body["run"])
    approval_id = UUID(body["approvals"][0]["id"])
    url = f"{server.url}/api/conversations/{run.conversation_id}/completions/"

    def send():
        word = {"content": "Never mind.", "stream": False}
        return httpx.post(url, json=word, headers=bearer, timeout=30).status_code

    def approve():
        return approval_decide(
            owner=user, approval_id=approval_id, decision="approved", scope="once"
        )

    status, _ = at_once(send, approve)
    assert status in (200, 202, 409)
    first = ended(body["run"])
    # A decision that is taken first may end the run before the message comes.
    assert first.stop_reason in ("end_turn", "stopped")
    assert status != 409 or first.stop_reason == "end_turn"


def test_approval_survives_a_restart(server, bearer, asking, user):
    body = begin(server.url, bearer)
    server.stop()
    approval_id = UUID(body["approvals"][0]["id"])
    approval_decide(owner=user, approval_id=approval_id, decision="approved")
    assert asking.set == []
    again = _Running()
    again.start()
    try:
        assert ended(body["run"]).stop_reason == "end_turn"
    finally:
        again.stop()
    assert asking.set == ["red"]


async def test_decision_elsewhere_goes_on_for_listeners_here_and_there(
    server, bearer, asking, user, monkeypatch
):
    monkeypatch.setattr(runtime, "KEEP_ALIVE_SECONDS", 0.1)
    client = httpx.AsyncClient(base_url=server.url, headers=bearer, timeout=30)
    async with client, Runtime(worker=False) as elsewhere:
        body = {"content": "Red."}
        async with client.stream("POST", "/api/completions/", json=body) as response:
            run_id = UUID(response.headers["X-Run-Id"])
            following = asyncio.create_task(_followed(elsewhere, run_id))
            parts = response.aiter_raw()
            here = await _until(parts, b"", b"event: approval_required")
            here = await _until(parts, here, b": keep-alive")
            await unit_of_work(_approve, user, run_id)
            here = await _until(parts, here, b"[DONE]")
        there = await asyncio.wait_for(following, 20)
    log = await unit_of_work(event_log.events_after, run_id=run_id, position=(0, 0))
    assert there == [logged.id for logged in log]
    assert list(dict.fromkeys(event.id for event in parse(here) if event.id)) == there
    assert [event.name for event in parse(here)].count("run_started") == 2
    assert asking.set == ["red"]


async def _followed(elsewhere: Runtime, run_id: UUID) -> list[str]:
    return [logged.id async for batch in elsewhere.events(run_id) for logged in batch or ()]


async def _until(parts, seen: bytes, marker: bytes) -> bytes:
    while marker not in seen:
        seen += await anext(parts)
    return seen


def _approve(user, run_id: UUID) -> None:
    approval = Approval.objects.get(run_id=run_id)
    approval_decide(owner=user, approval_id=approval.id, decision="approved")
