"""A vendor's server on loopback, scripted by a coroutine per connection, and clients for it."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import respx

from chat.providers.http import Endpoint, Upstream, build_client

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


class Vendor:
    """Counts connections and requests; ``gone`` is set when a client hangs up in the middle."""

    def __init__(self):
        self.connections = 0
        self.requests: list[bytes] = []
        self.gone = asyncio.Event()
        self.url = ""


@pytest.fixture
def vendor_server():
    """``async with vendor_server(script) as vendor``; ``script(send)`` writes one whole answer."""

    @asynccontextmanager
    async def run(script):
        vendor = Vendor()
        tasks: set[Any] = set()

        async def serve(reader, writer):
            tasks.add(asyncio.current_task())
            vendor.connections += 1

            async def send(data):
                writer.write(data)
                await writer.drain()

            try:
                while head := await reader.readuntil(b"\r\n\r\n"):
                    length = int(httpx.Headers(_headers(head)).get("content-length", 0))
                    vendor.requests.append(head + await reader.readexactly(length))
                    work = asyncio.ensure_future(script(send))
                    hangup = asyncio.ensure_future(reader.read(1))
                    await asyncio.wait({work, hangup}, return_when=asyncio.FIRST_COMPLETED)
                    if not work.done():
                        vendor.gone.set()
                        work.cancel()
                        break
                    hangup.cancel()
                    await asyncio.gather(hangup, return_exceptions=True)
                    if work.result() == "close":
                        break
            except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        vendor.url = f"http://127.0.0.1:{port}/v1"
        try:
            yield vendor
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return run


def _headers(head):
    lines = head.decode("latin-1").split("\r\n")[1:]
    return [tuple(line.split(": ", 1)) for line in lines if ": " in line]


def chunked(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@pytest.fixture
async def client():
    async with build_client() as client:
        yield client


@pytest.fixture
def pauses():
    """The waits that an upstream made with ``upstream_of`` asked for; none is really made."""
    return []


@pytest.fixture
def upstream_of(pauses):
    async def pause(seconds):
        pauses.append(seconds)

    def make(client, url="https://vendor.test/v1", **fields):
        endpoint = Endpoint(
            name="vendor",
            label="Vendor",
            base_url=url,
            key_variable="VENDOR_API_KEY",
            url_variable="VENDOR_BASE_URL",
            **({"key": "secret-key-1"} | fields),
        )
        return Upstream(client, endpoint, pause=pause)

    return make


class RouterTransport(httpx.AsyncBaseTransport):
    """A respx router's answers with their bodies unread, as a network has them."""

    def __init__(self, router):
        self._router = router

    async def handle_async_request(self, request):
        response = await self._router.async_handler(request)
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=httpx.ByteStream(response.content),
            request=request,
        )


@pytest.fixture
async def mocked():
    """A client whose answers come from a respx router, and the router."""
    router = respx.MockRouter(assert_all_called=False)
    async with build_client(RouterTransport(router)) as client:
        yield client, router
