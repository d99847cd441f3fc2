"""The chat over a real server, as programs use it: streams, listeners, stop, and who leaves."""

import asyncio
import threading
from collections.abc import Iterator

import httpx
import pytest
from django.db import connection

from accounts.services import token_create
from chat.models import Message, Run, ToolCall
from chat.providers.demo import DemoProvider
from chat.types import Completion, TextDelta
from notes.models import Note
from tests.chat.wire.parser import Event, parse

STORY = "make a note called Groceries with milk and eggs, then find it"


@pytest.fixture
def client(server, user) -> Iterator[httpx.Client]:
    _, secret = token_create(owner=user, name="script")
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=20) as client:
        yield client


def ask(client: httpx.Client, content, **options) -> httpx.Response:
    response = client.post("/api/completions/", json={"content": content, **options})
    assert response.status_code == 200, response.text
    return response


def text(parsed) -> str:
    chunks = [e.json for e in parsed if e.name == "message" and e.data != "[DONE]"]
    return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)


def follow(client, run_id, **headers) -> list[Event]:
    response = client.get(f"/api/runs/{run_id}/events/", headers=headers)
    assert response.status_code == 200
    return parse(response.content)


def test_story_streams_real_tool_calls_and_is_replayed_as_it_was(client, user):
    response = ask(client, STORY)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.content.startswith(b": connected\n\n")
    parsed = parse(response.content)
    names = [event.name for event in parsed if event.name != "message"]
    assert names[0] == "run_started"
    assert names[-1] == "done"
    assert parsed[-1].data == "[DONE]"
    called = [call["function"]["name"] for e in parsed if e.name == "tool_use" for call in e.json]
    assert called == ["note_create", "note_search"]
    assert [e.json["status"] for e in parsed if e.name == "tool_result"] == ["done", "done"]
    assert Note.objects.get(owner=user).title == "Groceries"

    run_id = response.headers["x-run-id"]
    replayed = follow(client, run_id)
    assert [e.name for e in replayed if not e.name.endswith("_delta")] == names
    spoken: dict[str, str] = {}
    for event in replayed:
        if event.name == "text_delta":
            message_id = event.json["message_id"]
            spoken[message_id] = spoken.get(message_id, "") + event.json["text"]
    assert "\n\n".join(spoken.values()) == text(parsed)
    rows = Message.objects.filter(run_id=run_id).order_by("created")
    assert [row.content for row in rows if row.content] == list(spoken.values())
    assert ToolCall.objects.filter(message__run_id=run_id).count() == 2


def test_next_message_right_after_done_is_never_refused_as_busy(client):
    conversation = ask(client, "what time is it").headers["x-conversation-id"]
    for _ in range(3):
        with client.stream(
            "POST",
            f"/api/conversations/{conversation}/completions/",
            json={"content": "what time is it"},
        ) as response:
            assert response.status_code == 200
            for line in response.iter_lines():
                if line == "event: done":
                    break


def test_answer_without_stream_says_the_same(client):
    body = ask(client, STORY, stream=False).json()
    assert [call["name"] for call in body["tool_calls"]] == ["note_create", "note_search"]
    streamed = follow(client, body["run_id"])
    said = "".join(e.json["text"] for e in streamed if e.name == "text_delta")
    assert body["choices"][0]["message"]["content"].replace("\n\n", "") == said.replace("\n\n", "")
    assert body["choices"][0]["finish_reason"] == "stop"


def test_client_that_leaves_detaches_and_the_run_goes_on(client):
    with client.stream("POST", "/api/completions/", json={"content": STORY}) as response:
        for line in response.iter_lines():
            if line == "event: run_started":
                break
    run_id = response.headers["x-run-id"]
    parsed = follow(client, run_id)
    assert parsed[-1].name == "done"
    assert parsed[-1].json["reason"] == "end_turn"


def test_listener_resumes_strictly_after_what_it_saw(client):
    run_id = ask(client, STORY).headers["x-run-id"]
    whole = follow(client, run_id)
    rest = follow(client, run_id, **{"Last-Event-ID": whole[4].id})
    assert rest == whole[5:]
    again = client.get(f"/api/runs/{run_id}/events/", headers={"Last-Event-ID": whole[-1].id})
    assert again.status_code == 204


def test_stop_from_elsewhere_ends_the_stream_and_keeps_the_words(client):
    with client.stream("POST", "/api/completions/", json={"content": STORY}) as response:
        lines = response.iter_lines()
        received = []
        for line in lines:
            received.append(line)
            if '"content":' in line:
                break
        run_id = response.headers["x-run-id"]
        stopped = client.post(f"/api/runs/{run_id}/stop/")
        assert stopped.status_code == 200
        received += lines
    parsed = parse("\n".join(received).encode() + b"\n")
    done = next(event for event in parsed if event.name == "done")
    assert done.json["reason"] == "stopped"
    run = Run.objects.get(id=run_id)
    assert (run.status, run.stop_reason) == ("finished", "stopped")
    assert all(call.status != "running" for call in ToolCall.objects.all())
    conversation = response.headers["x-conversation-id"]
    messages = client.get(f"/api/conversations/{conversation}/messages/").json()["results"]
    assert messages[0]["content"] == STORY
    assert "".join(m["content"] for m in messages[1:]) == text(parsed).replace("\n\n", "")


def test_paths_work_without_their_slash(client):
    response = client.post("/api/completions", json={"content": "hello", "stream": False})
    assert response.status_code == 200
    run_id = response.json()["run_id"]
    assert client.get(f"/api/runs/{run_id}").json()["status"] == "finished"
    assert parse(client.get(f"/api/runs/{run_id}/events").content)[-1].name == "done"


def test_a_model_that_nobody_has_is_an_error_in_both_forms(client):
    streamed = ask(client, "hello", model="nobody/none")
    parsed = parse(streamed.content)
    assert [event.name for event in parsed][-4:] == ["error", "message", "done", "message"]
    code = next(event.json["code"] for event in parsed if event.name == "error")
    response = client.post(
        "/api/completions/", json={"content": "hello", "model": "nobody/none", "stream": False}
    )
    assert (response.status_code, code) == (400, "model_unknown")
    assert response.json()["error"]["code"] == code


class Crowd(threading.Thread):
    """Clients that each ask, read their first words and stay until the answer ends."""

    def __init__(self, client: httpx.Client, size: int) -> None:
        super().__init__(name="crowd", daemon=True)
        self.address, self.headers, self.size = client.base_url, client.headers, size
        self.listening = 0
        self.finished = 0

    def run(self) -> None:
        asyncio.run(self.all())

    async def all(self) -> None:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            base_url=self.address, headers=self.headers, timeout=60, limits=limits
        ) as client:
            await asyncio.gather(*(self.one(client) for _ in range(self.size)))

    async def one(self, client: httpx.AsyncClient) -> None:
        body = {"content": "hold the line"}
        async with client.stream("POST", "/api/completions/", json=body) as response:
            async for line in response.aiter_lines():
                self.listening += '"content":"' in line
                self.finished += line == "data: [DONE]"


def test_200_open_streams_take_at_most_20_connections_and_no_threads(client, monkeypatch):
    go = threading.Event()

    async def held(self, request):
        yield (TextDelta("One moment"),)
        while not go.is_set():
            await asyncio.sleep(0.01)
        yield (Completion(text="One moment"),)

    monkeypatch.setattr(DemoProvider, "stream", held)
    crowd = Crowd(client, 200)
    crowd.start()
    connections = threads = 0
    while crowd.is_alive():
        connections = max(connections, _connections())
        if crowd.listening == 200 and not go.is_set():
            threads = threading.active_count()
            go.set()
        crowd.join(0.02)
    assert crowd.finished == 200
    assert connections <= 20
    assert threads < 60


def _connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])
