"""The only module that speaks HTTP to model vendors: one client, time-outs, retries, errors.

Owns what happens up to and around an answer: what is tried again before it begins, and how a
failure is put into words for the person. What the answer holds belongs to ``openai`` and
``assembly``. The client is made by the process's runtime and passed in; nothing here is global.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

import aiohttp
import httpx
import msgspec
from httpx_aiohttp import AiohttpTransport

from chat.exceptions import ProviderError
from chat.providers.faults import fault_of_body, is_out_of_funds, redact
from chat.types import Fault

RETRIES = 2
LONGEST_BACKOFF = 8.0

#: A server that asks for more patience than this is not asked again: the person decides.
LONGEST_WAIT = 120.0

_HOSTED_GAP, _LOCAL_GAP = 120.0, 600.0
_ERROR_BODY_LIMIT = 64 * 1024
_JSON_BODY_LIMIT = 16 * 1024 * 1024
_DRAIN_SECONDS = 0.5

#: What the network can raise; some of aiohttp's own pass through its transport unchanged.
_NETWORK = (httpx.TransportError, httpx.DecodingError, aiohttp.ClientError, OSError)

Client: TypeAlias = httpx.AsyncClient
Pause: TypeAlias = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a vendor listens and how it is greeted. ``local``: a cold model may be long silent."""

    name: str
    label: str
    base_url: str
    key: str = field(default="", repr=False)
    key_variable: str = ""
    url_variable: str = ""
    local: bool = False


class BrokenAnswerError(Exception):
    """An answer that had begun broke off."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def build_client(transport: httpx.AsyncBaseTransport | None = None) -> Client:
    """The shared client of one process; whoever makes it closes it.

    The environment's proxies and netrc are not read: where a key is sent is the operator's word.
    """
    return httpx.AsyncClient(
        transport=transport or AiohttpTransport(limits=httpx.Limits(max_connections=0)),
        headers={"Accept-Encoding": "identity", "User-Agent": "Notewire"},
        trust_env=False,
    )


class Answer:
    """The body of a successful answer, to be read once."""

    def __init__(self, response: httpx.Response, upstream: Upstream) -> None:
        self._response = response
        self._upstream = upstream
        self._reads = self._iterate()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._reads

    async def drain(self) -> None:
        """Read what little follows the end mark, so that the connection is kept for the next."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self._reads:
                    pass
        except (TimeoutError, BrokenAnswerError):
            pass

    async def aclose(self) -> None:
        await self._reads.aclose()
        await self._response.aclose()

    async def _iterate(self) -> AsyncGenerator[bytes, None]:
        encoded = self._response.headers.get("content-encoding", "identity") != "identity"
        reads = self._response.aiter_bytes() if encoded else self._response.aiter_raw()
        try:
            async for read in reads:
                yield read
        except _NETWORK as error:
            raise BrokenAnswerError(self._upstream.fault_of_break(error)) from error


class Upstream:
    """One endpoint, asked over the shared client."""

    def __init__(self, client: Client, endpoint: Endpoint, *, pause: Pause = asyncio.sleep) -> None:
        self.endpoint = endpoint
        self._client = client
        self._pause = pause
        gap = _LOCAL_GAP if endpoint.local else _HOSTED_GAP
        self._timeout = httpx.Timeout(connect=10.0, write=60.0, pool=10.0, read=gap)

    @asynccontextmanager
    async def post(self, path: str, body: bytes) -> AsyncGenerator[Answer, None]:
        """Send ``body`` until that succeeds; leaving closes a connection that is not read out."""
        answer = Answer(await self._answered("POST", path, body), self)
        try:
            yield answer
        finally:
            await answer.aclose()

    async def get_json(self, path: str, *, patience: float) -> Any:
        """The JSON at ``path``; ``patience`` in seconds bounds the whole."""
        try:
            async with asyncio.timeout(patience):
                response = await self._answered("GET", path, b"", retries=0)
                try:
                    body = await _read_at_most(response, _JSON_BODY_LIMIT)
                finally:
                    await response.aclose()
                return msgspec.json.decode(body)
        except TimeoutError as error:
            fault = Fault("timeout", f"{self._place()} did not answer in time.", retryable=True)
            raise self._failed(fault) from error
        except _NETWORK as error:
            raise self._failed(self.fault_of_break(error)) from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._failed(self._no_api("something that is not JSON")) from error

    def fault_of_break(self, error: Exception) -> Fault:
        """What to say when an answer breaks off in the middle."""
        if isinstance(error, httpx.TimeoutException):
            gap = int(self._timeout.read or 0)
            text = f"{self.endpoint.label} sent nothing for {gap} seconds."
            return Fault("timeout", text, retryable=True)
        text = f"The connection to {self.endpoint.label} broke off in the middle of the answer."
        return Fault("connection_lost", text, retryable=True)

    async def _answered(
        self, method: str, path: str, body: bytes, *, retries: int = RETRIES
    ) -> httpx.Response:
        """A successful response; everything else is a ``ProviderError``, after the retries."""
        for attempt in range(retries + 1):
            try:
                response = await self._send(method, path, body)
            except _NETWORK as error:
                fault = self._fault_of_connection(error)
                wait = None if isinstance(error, httpx.ReadTimeout) else _backoff(attempt)
            except httpx.InvalidURL as error:
                raise self._failed(self._no_api("nothing, because it is no address")) from error
            else:
                if response.is_success and not _is_html(response):
                    return response
                fault = await self._fault_of_response(response)
                wait = _wait_before_retry(response, fault, attempt)
            if wait is None or attempt == retries:
                break
            await self._pause(wait)
        raise self._failed(fault)

    async def _send(self, method: str, path: str, body: bytes) -> httpx.Response:
        headers = {"Accept": "text/event-stream, application/json"}
        if self.endpoint.key:
            headers["Authorization"] = f"Bearer {self.endpoint.key}"
        if body:
            headers["Content-Type"] = "application/json"
        request = self._client.build_request(
            method,
            self.endpoint.base_url + path,
            content=body or None,
            headers=headers,
            timeout=self._timeout,
        )
        return await self._client.send(request, stream=True)

    async def _fault_of_response(self, response: httpx.Response) -> Fault:
        status = response.status_code
        try:
            async with asyncio.timeout(5):
                body = await _read_at_most(response, _ERROR_BODY_LIMIT)
        except _NETWORK:
            body = b""
        finally:
            await response.aclose()
        if status < 300 or (_is_html(response) and status < 500):
            return self._no_api("a web page", status)
        if status < 400:
            return self._no_api("a redirection to another address", status)
        return fault_of_body(body, status=status)

    def _no_api(self, what: str, status: int | None = None) -> Fault:
        hint = f" Check {self.endpoint.url_variable}." if self.endpoint.url_variable else ""
        text = f"{self.endpoint.base_url} answered with {what}: this URL is not an API.{hint}"
        return Fault("not_an_api", text, status=status)

    def _fault_of_connection(self, error: Exception) -> Fault:
        """The aiohttp transport reports nearly all as a time-out; the cause tells them apart."""
        cause = error.__cause__
        place = self._place()
        match cause:
            case aiohttp.ClientConnectorDNSError():
                kind, text = "name_unknown", f"The name of {place} cannot be found."
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
                kind, text = "tls_failed", f"{place} offers no connection that can be trusted."
            case aiohttp.ClientConnectorError():
                kind = "connection_refused"
                text = f"Nothing answers at {place}. Is it running?"
            case aiohttp.ServerTimeoutError() | TimeoutError():
                kind, text = "timeout", f"{place} did not answer in time."
            case _ if isinstance(error, httpx.TimeoutException) and cause is None:
                kind, text = "timeout", f"{place} did not answer in time."
            case _:
                kind, text = "connection_failed", f"The connection to {place} failed."
        return Fault(kind, text, retryable=True)

    def _place(self) -> str:
        host = self.endpoint.base_url.partition("://")[2].partition("/")[0]
        return f"{self.endpoint.label} ({host})"

    def redacted(self, fault: Fault) -> Fault:
        """The fault without the endpoint's key, in case the vendor repeats it."""
        message = fault.message and redact(fault.message, self.endpoint.key)
        return fault if message == fault.message else replace(fault, message=message)

    def _failed(self, fault: Fault) -> ProviderError:
        fault = self.redacted(fault)
        return ProviderError(
            _public_message(self.endpoint, fault), provider=self.endpoint.name, fault=fault
        )


def _public_message(endpoint: Endpoint, fault: Fault) -> str:
    """What the person reads: what happened, what to do, and the vendor's own words."""
    if fault.status is None or fault.type == "not_an_api":
        return fault.message or f"{endpoint.label} failed."
    said = f" It said: {fault.message}" if fault.message else ""
    where = f" Check {endpoint.key_variable}." if endpoint.key_variable else ""
    if is_out_of_funds(fault):
        return f"The quota or balance at {endpoint.label} is used up.{said}"
    match fault.status:
        case 401 | 403:
            return f"{endpoint.label} refuses the key.{where}{said}"
        case 404:
            return f"{endpoint.label} does not know this model or address.{said}"
        case 429:
            return f"{endpoint.label} limits how often it may be asked. Try again later.{said}"
        case status if status >= 500:
            return f"{endpoint.label} is in trouble (status {status}). Try again later.{said}"
        case status:
            return f"{endpoint.label} refuses the request (status {status}).{said}"


def _wait_before_retry(response: httpx.Response, fault: Fault, attempt: int) -> float | None:
    """Seconds until the next try, None for no further one; as OpenAI's own clients decide it.

    They also repeat what can only fail again; quota, balance and keys are not asked twice here.
    """
    if is_out_of_funds(fault) or fault.type == "not_an_api" or response.status_code in (401, 403):
        return None
    wish = response.headers.get("x-should-retry")
    status = response.status_code
    if wish == "false" or (wish != "true" and status not in (408, 409, 429) and status < 500):
        return None
    asked = _retry_after(response.headers)
    if asked is not None and asked > LONGEST_WAIT:
        return None
    return asked if asked else _backoff(attempt)


def _retry_after(headers: httpx.Headers) -> float | None:
    """Seconds that the server asks for; None where it does not, or in the past."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            seconds = float(milliseconds) / 1000
        else:
            seconds = float(headers.get("retry-after", ""))
    except ValueError:
        try:
            date = parsedate_to_datetime(headers.get("retry-after", ""))
        except ValueError:
            return None
        seconds = date.timestamp() - time.time()
    return seconds if seconds > 0 else None


def _backoff(attempt: int) -> float:
    jitter = 1 - 0.25 * random.random()  # noqa: S311 - spreads load, guards nothing
    return min(0.5 * 2.0**attempt, LONGEST_BACKOFF) * jitter


def _is_html(response: httpx.Response) -> bool:
    return "html" in response.headers.get("content-type", "").lower()


async def _read_at_most(response: httpx.Response, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async with aclosing(response.aiter_bytes()) as reads:  # type: ignore[type-var]
        async for read in reads:
            parts.append(read)
            size += len(read)
            if size > limit:
                break
    return b"".join(parts)[:limit]
