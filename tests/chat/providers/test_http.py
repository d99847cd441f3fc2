"""Retries, errors and their words, against a mocked transport and against real sockets."""

import asyncio
import email.utils
import socket
import time

import httpx
import pytest

from chat.exceptions import ProviderError
from chat.providers.http import Endpoint, build_client
from tests.chat.providers.conftest import SSE, chunked

URL = "https://vendor.test/v1/chat/completions"


async def read(upstream):
    async with upstream.post("/chat/completions", b"{}") as answer:
        return b"".join([part async for part in answer])


async def failure(upstream):
    with pytest.raises(ProviderError) as caught:
        await read(upstream)
    return caught.value


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_passing_trouble_is_tried_again(mocked, upstream_of, pauses, status):
    client, router = mocked
    answers = [httpx.Response(status), httpx.Response(status), httpx.Response(200, text="ok")]
    route = router.post(URL).mock(side_effect=answers)
    assert await read(upstream_of(client)) == b"ok"
    assert route.call_count == 3
    assert 0.375 <= pauses[0] <= 0.5 < 0.75 <= pauses[1] <= 1.0


async def test_third_failure_is_told(mocked, upstream_of, pauses):
    client, router = mocked
    route = router.post(URL).respond(503, json={"error": {"message": "loading model"}})
    error = await failure(upstream_of(client))
    assert str(error) == (
        "Vendor is in trouble (status 503). Try again later. It said: loading model"
    )
    assert (error.fault.status, error.fault.retryable, error.provider) == (503, True, "vendor")
    assert (route.call_count, len(pauses)) == (3, 2)


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (400, {"message": "bad"}, "refuses the request (status 400). It said: bad"),
        (
            401,
            {"message": "bad key secret-key-1"},
            "key. Check VENDOR_API_KEY. It said: bad key [key]",
        ),
        (402, {"message": "pay"}, "quota or balance at Vendor is used up. It said: pay"),
        (403, {}, "refuses the key. Check VENDOR_API_KEY."),
        (404, {"message": "no such model"}, "model or address. It said: no such model"),
        (429, {"code": "insufficient_quota", "message": "q"}, "is used up. It said: q"),
        (429, {"type": "billing_hard_limit_reached"}, "is used up."),
        (500, {"code": "billing_not_active"}, "is used up."),
    ],
)
async def test_permanent_trouble_is_not_tried_again(
    mocked, upstream_of, pauses, status, error, words
):
    client, router = mocked
    route = router.post(URL).respond(status, json={"error": error})
    told = await failure(upstream_of(client))
    assert words in str(told)
    assert "secret-key-1" not in f"{told} {told.fault}"
    assert (route.call_count, pauses, told.fault.status) == (1, [], status)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"a"}}', "a"),
        (b'{"error":"a"}', "a"),
        (b'[{"error":{"code":400,"message":"a","status":"INVALID_ARGUMENT"}}]', "a"),
        (b'{"object":"error","message":"a","type":"x","code":1}', "a"),
        (b'{"detail":[{"loc":["body"],"msg":"a"},{"msg":"b"}]}', "a; b"),
        (b'{"detail":"a"}', "a"),
        (b'{"message":"a"}', "a"),
        (b"nonsense", None),
        (b"", None),
        (b"[" * 5000, None),
        (b'"text"', "text"),
    ],
)
async def test_error_of_any_dialect_is_read(mocked, upstream_of, body, message):
    client, router = mocked
    router.post(URL).respond(400, content=body)
    assert (await failure(upstream_of(client))).fault.message == message


@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({"retry-after": "3"}, [3.0, 3.0]),
        ({"retry-after-ms": "1500"}, [1.5, 1.5]),
        ({"retry-after": "120"}, [120.0, 120.0]),
        ({"retry-after": "121"}, []),
        ({"x-should-retry": "false"}, []),
    ],
)
async def test_server_says_when_to_try_again(mocked, upstream_of, pauses, headers, waits):
    client, router = mocked
    router.post(URL).respond(429, headers=headers)
    await failure(upstream_of(client))
    assert pauses == waits


@pytest.mark.parametrize("retry_after", ["0", "-1", "soon", "nan", "Mon, 01 Jan 2024 00:00:00 GMT"])
async def test_useless_wish_is_ignored(mocked, upstream_of, pauses, retry_after):
    client, router = mocked
    router.post(URL).respond(429, headers={"retry-after": retry_after})
    await failure(upstream_of(client))
    assert len(pauses) == 2
    assert max(pauses) <= 1


async def test_server_may_name_a_date(mocked, upstream_of, pauses):
    client, router = mocked
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    router.post(URL).respond(429, headers={"retry-after": date})
    await failure(upstream_of(client))
    assert 20 < pauses[0] <= 30


async def test_server_may_ask_for_another_try_of_anything(mocked, upstream_of, pauses):
    client, router = mocked
    router.post(URL).respond(400, headers={"x-should-retry": "true"})
    await failure(upstream_of(client))
    assert len(pauses) == 2


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, {"content-type": "text/html"}),
        (404, {"content-type": "text/html; charset=utf-8"}),
        (302, {"location": "https://vendor.test/login"}),
    ],
)
async def test_web_page_is_told_as_no_api(mocked, upstream_of, pauses, status, headers):
    client, router = mocked
    router.post(URL).respond(status, headers=headers, text="<html>Welcome</html>")
    error = await failure(upstream_of(client))
    assert "this URL is not an API. Check VENDOR_BASE_URL." in str(error)
    assert (error.fault.type, pauses) == ("not_an_api", [])


async def test_web_page_of_a_gateway_in_trouble_is_tried_again(mocked, upstream_of, pauses):
    client, router = mocked
    router.post(URL).respond(502, headers={"content-type": "text/html"}, text="<html>")
    assert "in trouble (status 502)" in str(await failure(upstream_of(client)))
    assert len(pauses) == 2


async def test_key_travels_only_in_its_header(mocked, upstream_of):
    client, router = mocked
    route = router.post(URL).respond(200)
    await read(upstream_of(client))
    headers = route.calls.last.request.headers
    assert headers["authorization"] == "Bearer secret-key-1"
    assert headers["accept-encoding"] == "identity"
    await read(upstream_of(client, key=""))
    assert "authorization" not in route.calls.last.request.headers


def test_key_is_not_in_the_endpoint_as_text():
    assert "secret" not in repr(Endpoint("a", "A", "https://a.test", key="secret"))


async def test_refused_connection_is_tried_again_and_worded(client, upstream_of, pauses):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        error = await failure(upstream_of(client, f"http://127.0.0.1:{port}/v1"))
    assert str(error) == f"Nothing answers at Vendor (127.0.0.1:{port}). Is it running?"
    assert (error.fault.type, len(pauses)) == ("connection_refused", 2)


async def test_unknown_name_is_worded(client, upstream_of, monkeypatch):
    async def no_name(*args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", no_name)
    error = await failure(upstream_of(client, "http://nowhere.invalid/v1"))
    assert str(error) == "The name of Vendor (nowhere.invalid) cannot be found."


@pytest.mark.parametrize(
    "url", ["ftp://vendor.test", "http://", "http://[", "http://a.test:x", "nonsense"]
)
async def test_address_that_is_none_is_told(client, upstream_of, url):
    assert (await failure(upstream_of(client, url))).fault.status is None


async def test_server_that_speaks_no_http_is_told(client, upstream_of, vendor_server, pauses):
    async def script(send):
        await send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        return "close"

    async with vendor_server(script) as vendor:
        error = await failure(upstream_of(client, vendor.url))
    assert (error.fault.type, len(pauses)) == ("connection_failed", 2)


async def test_server_without_tls_is_told(client, upstream_of):
    async def refuse(reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await failure(upstream_of(client, f"https://127.0.0.1:{port}/v1"))
    assert error.fault.type == "tls_failed"


async def test_connection_closed_before_the_answer_is_tried_again(
    client, upstream_of, vendor_server, pauses
):
    answers = iter([b"", SSE + b"Content-Length: 2\r\n\r\nok"])

    async def script(send):
        await send(answer := next(answers))
        return None if answer else "close"

    async with vendor_server(script) as vendor:
        assert await read(upstream_of(client, vendor.url)) == b"ok"
        assert (len(vendor.requests), len(pauses)) == (2, 1)


async def test_connection_is_kept_when_the_answer_is_read_to_its_end(
    client, upstream_of, vendor_server
):
    async def script(send):
        await send(SSE + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(b"data: 1\n\n"))
        await send(b"0\r\n\r\n")

    async with vendor_server(script) as vendor:
        for _ in range(3):
            await read(upstream_of(client, vendor.url))
        assert (vendor.connections, len(vendor.requests)) == (1, 3)


async def test_many_streams_run_at_once(client, upstream_of, vendor_server):
    """The transport's own limit is 100 connections."""
    started, everyone = [], asyncio.Event()

    async def script(send):
        await send(SSE + b"Content-Length: 2\r\n\r\n")
        started.append(1)
        if len(started) == 120:
            everyone.set()
        await everyone.wait()
        await send(b"ok")

    async with vendor_server(script) as vendor, asyncio.timeout(30):
        upstream = upstream_of(client, vendor.url)
        assert await asyncio.gather(*(read(upstream) for _ in range(120))) == [b"ok"] * 120


async def test_compressed_answer_is_read_all_the_same(client, upstream_of, vendor_server):
    import gzip

    packed = gzip.compress(b"data: 1\n\n")

    async def script(send):
        await send(
            SSE + f"Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
        )
        await send(packed)

    async with vendor_server(script) as vendor:
        assert await read(upstream_of(client, vendor.url)) == b"data: 1\n\n"


async def test_environment_sets_no_proxy(monkeypatch, upstream_of, vendor_server):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    async def script(send):
        await send(SSE + b"Content-Length: 2\r\n\r\nok")

    async with vendor_server(script) as vendor, build_client() as client:
        assert await read(upstream_of(client, vendor.url)) == b"ok"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", "timeout"),
        (SSE + b"Content-Length: 9\r\n\r\n{", "timeout"),
        (b"close" + SSE + b"Content-Length: 9\r\n\r\n{", "connection_lost"),
    ],
)
async def test_list_that_does_not_come_is_a_failure(
    client, upstream_of, vendor_server, answer, kind
):
    async def script(send):
        await send(answer.removeprefix(b"close"))
        if answer.startswith(b"close"):
            return "close"
        await asyncio.Event().wait()

    async with vendor_server(script) as vendor:
        with pytest.raises(ProviderError) as caught:
            await upstream_of(client, vendor.url).get_json("/models", patience=0.2)
    assert caught.value.fault.type == kind


async def test_error_that_breaks_off_is_told_by_its_status(client, upstream_of, vendor_server):
    async def script(send):
        await send(b"HTTP/1.1 400 Bad\r\nContent-Length: 99\r\n\r\n{")
        return "close"

    async with vendor_server(script) as vendor:
        assert (await failure(upstream_of(client, vendor.url))).fault.status == 400


async def test_error_without_an_end_is_read_only_so_far(mocked, upstream_of):
    client, router = mocked
    router.post(URL).respond(400, content=b" " * 2_000_000)
    assert (await failure(upstream_of(client))).fault.message is None
