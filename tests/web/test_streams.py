"""Streams and deferred answers over a real server: what the client sees, what the server holds."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import httpx
import pytest
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from web.streams import DeferredResponse, EventStreamResponse

pytestmark = pytest.mark.urls(__name__)


class Stage:
    """What the views below do and what the test can see of it."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.closed = threading.Event()
        self.states: list[dict] = []


stage = Stage()


@pytest.fixture(autouse=True)
def _fresh_stage():
    global stage
    stage = Stage()


async def _until(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0.005)


async def two_parts(state):
    stage.states.append(state)
    try:
        yield b"data: one\n\n"
        await _until(stage.go)
        yield b"data: two\n\n"
    finally:
        stage.closed.set()


async def broken(state):
    yield b"data: one\n\n"
    raise RuntimeError("the source broke")


async def created(state):
    stage.states.append(state)
    await _until(stage.go)
    return 201, b'{"made": true}', {"X-Late": "yes", "Content-Type": "application/problem+json"}


async def deferred_stream(state):
    return 200, two_parts(state), {"Content-Type": "text/event-stream"}


async def never(state):
    raise RuntimeError("the producer broke")


def _cookie(response: HttpResponse) -> HttpResponse:
    response.set_cookie("flavour", "oat")
    return response


urlpatterns = [
    path("api/stream/", csrf_exempt(lambda request: _cookie(EventStreamResponse(two_parts)))),
    path("api/broken/", lambda request: EventStreamResponse(broken, label="run 17")),
    path("api/later/", lambda request: _cookie(DeferredResponse(created))),
    path("api/later-stream/", lambda request: DeferredResponse(deferred_stream)),
    path("api/never/", lambda request: DeferredResponse(never)),
    path("api/begun/", lambda request: DeferredResponse(created, begun=b'{"goes": "on"}')),
    path("api/begun-never/", lambda request: DeferredResponse(never, begun=b'{"goes": "on"}')),
    path("api/echo/", csrf_exempt(lambda request: HttpResponse(str(len(request.body))))),
    path("plain/", lambda request: HttpResponse("plain")),
]


def _read_until_one(parts):
    received = next(parts)
    while b"one" not in received:
        received += next(parts)
    return received


def test_stream_sends_comment_first_then_parts(server):
    with httpx.stream("GET", f"{server.url}/api/stream/", timeout=10) as response:
        parts = response.iter_raw()
        assert _read_until_one(parts) == b": connected\n\ndata: one\n\n"
        stage.go.set()
        assert b"".join(parts) == b"data: two\n\n"
    assert stage.closed.is_set()
    assert "runtime" in stage.states[0]


def test_stream_headers_keep_intermediaries_away(server):
    stage.go.set()
    headers = {"Accept-Encoding": "gzip", "Accept": "text/event-stream"}
    response = httpx.get(f"{server.url}/api/stream/", headers=headers)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache, no-store, no-transform"
    assert response.headers["content-encoding"] == "identity"
    assert response.headers["x-accel-buffering"] == "no"
    assert "content-length" not in response.headers
    assert "etag" not in response.headers
    assert response.cookies["flavour"] == "oat"


def test_stream_leaves_connection_usable(server):
    stage.go.set()
    with httpx.Client(base_url=server.url) as client:
        for _ in range(3):
            assert client.get("/api/stream/").text.endswith("data: two\n\n")
            assert client.get("/plain/").text == "plain"


def test_head_gets_headers_and_no_stream(server):
    response = httpx.head(f"{server.url}/api/stream/")
    assert response.headers["content-type"].startswith("text/event-stream")
    assert not stage.states


def test_stream_that_fails_ends_with_error_event(server, caplog):
    response = httpx.get(f"{server.url}/api/broken/")
    name, data = response.text.removeprefix(": connected\n\ndata: one\n\n").strip().split("\n")
    assert name == "event: error"
    assert json.loads(data.removeprefix("data: "))["code"] == "stream_broken"
    assert "/api/broken/ run 17" in caplog.text
    assert "the source broke" in caplog.text


def test_stream_is_closed_when_client_leaves(server):
    with httpx.stream("GET", f"{server.url}/api/stream/") as response:
        _read_until_one(response.iter_raw())
    left = time.monotonic()
    assert stage.closed.wait(5)
    assert time.monotonic() - left < 4


def test_deferred_answer_keeps_cookies_and_takes_late_status(server):
    stage.go.set()
    response = httpx.get(f"{server.url}/api/later/")
    assert response.status_code == 201
    assert response.json() == {"made": True}
    assert response.headers["x-late"] == "yes"
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["content-length"] == "14"
    assert response.cookies["flavour"] == "oat"


def test_deferred_stream_follows_late_status(server):
    stage.go.set()
    response = httpx.get(f"{server.url}/api/later-stream/")
    assert response.headers["content-type"] == "text/event-stream"
    assert response.text == "data: one\n\ndata: two\n\n"


def test_deferred_failure_is_an_envelope(server, caplog):
    response = httpx.get(f"{server.url}/api/never/")
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal"
    assert "the producer broke" in caplog.text


def test_deferred_failure_of_what_goes_on_is_no_error(server, caplog):
    response = httpx.get(f"{server.url}/api/begun-never/")
    assert (response.status_code, response.json()) == (202, {"goes": "on"})
    assert "the producer broke" in caplog.text


@pytest.mark.parametrize("where", ["stream", "later"])
def test_waiting_clients_hold_no_threads(server, where):
    before = threading.active_count()

    async def waiting() -> int:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(limits=limits, timeout=20) as client:
            url = f"{server.url}/api/{where}/"
            tasks = [asyncio.create_task(client.get(url)) for _ in range(100)]
            while len(stage.states) < 100:
                await asyncio.sleep(0.01)
            held = threading.active_count()
            stage.go.set()
            answers = await asyncio.gather(*tasks)
            assert {answer.status_code for answer in answers} <= {200, 201}
            return held

    assert asyncio.run(waiting()) - before < 45


def test_draining_ends_streams_with_a_comment(server):
    with httpx.stream("GET", f"{server.url}/api/stream/", timeout=10) as response:
        parts = response.iter_raw()
        _read_until_one(parts)
        started = time.monotonic()
        server.stop()
        assert b"".join(parts).endswith(b": restarting\n\n")
    assert time.monotonic() - started < 5
    assert stage.closed.is_set()


def _answered_by_draining(server, where: str) -> httpx.Response:
    results: list[httpx.Response] = []
    thread = threading.Thread(
        target=lambda: results.append(httpx.get(f"{server.url}/api/{where}/", timeout=10))
    )
    thread.start()
    while not stage.states:
        time.sleep(0.005)
    server.stop()
    thread.join(10)
    return results[0]


def test_draining_answers_deferred_with_503(server):
    response = _answered_by_draining(server, "later")
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "restarting"


def test_draining_answers_what_goes_on_with_202(server):
    response = _answered_by_draining(server, "begun")
    assert (response.status_code, response.json()) == (202, {"goes": "on"})


def test_missing_slash_is_completed_under_api_without_redirect(server):
    assert httpx.post(f"{server.url}/api/echo", content=b"12345").text == "5"
    assert httpx.get(f"{server.url}/plain").status_code in (301, 404)


@pytest.mark.parametrize("chunked", [False, True])
def test_body_over_cap_is_refused(server, chunked):
    body = b"x" * (1024 * 1024 + 1)
    content = iter([body[:1000], body[1000:]]) if chunked else body
    response = httpx.post(f"{server.url}/api/echo/", content=content)
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "body_too_large"


@pytest.mark.parametrize("chunked", [False, True])
def test_body_over_cap_is_refused_with_a_page_where_a_page_was_asked_for(server, chunked):
    body = b"x" * (1024 * 1024 + 1)
    content = iter([body[:1000], body[1000:]]) if chunked else body
    browser = {"Accept": "text/html,*/*;q=0.8"}
    response = httpx.post(f"{server.url}/login/", content=content, headers=browser)
    assert response.status_code == 413
    assert response.headers["Content-Type"].startswith("text/html")
    assert "At most 1 MiB can be sent here." in response.text


def test_body_over_cap_leads_back_to_a_form_that_says_so(server):
    body, url = b"x" * (33 * 1024 * 1024 + 1), f"{server.url}/notes/transfers/"
    response = httpx.post(url, content=body, headers={"Accept": "text/html"})
    assert response.status_code == 303
    assert response.headers["Location"] == "/notes/transfers/?too_large=1"
    assert httpx.post(url, content=body, headers={"Accept": "application/json"}).json() == {
        "error": {
            "code": "body_too_large",
            "message": "At most 33 MiB can be sent here. Nothing was changed.",
            "fields": {},
        }
    }


def test_body_at_cap_is_accepted(server):
    body = b"x" * (1024 * 1024)
    assert httpx.post(f"{server.url}/api/echo/", content=body).text == str(len(body))
