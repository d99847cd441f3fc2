"""Any server that speaks OpenAI's Chat Completions, streamed.

Owns one model call from request to ``Completion``: sending, reading, the second try without an
option that the server refuses. Wire formats belong to ``openai_request`` and ``assembly``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from chat.exceptions import ProviderError
from chat.providers.assembly import Assembler
from chat.providers.http import Answer, BrokenAnswerError, Upstream
from chat.providers.openai_request import Option, Quirks, body_of, option_named
from chat.providers.sse import EventDecoder, EventTooLargeError
from chat.providers.think_tags import ThinkTags
from chat.types import Completion, Delta, Fault, ModelRequest

#: What one model call may send in all. A run has a deadline; this bounds a server that babbles.
MAX_ANSWER_BYTES = 128 * 1024 * 1024

_TOLD = {
    "stream_incomplete": "{label} ended the answer before it was complete.",
    "stream_malformed": "{label} sent something that cannot be read.",
    "stream_empty": "{label} returned an empty answer.",
    "stream_too_large": "{label} sent more than an answer may hold.",
    "not_an_api": "{label} answered with a web page: its URL is not an API.",
}


class OpenAIProvider:
    """One endpoint. It remembers which options a model refused, for as long as it lives."""

    def __init__(self, upstream: Upstream, *, quirks: Quirks | None = None) -> None:
        self.name = upstream.endpoint.name
        self._upstream = upstream
        self._quirks = quirks or Quirks()
        self._flipped: dict[str, frozenset[Option]] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Delta, ...], None]:
        async with self._opened(request) as answer:
            reading = _Reading(request, ThinkTags() if self._quirks.think_tags else None)
            try:
                async for read in answer:
                    if deltas := reading.take(read):
                        yield deltas
                    if reading.finished:
                        if reading.ended:
                            await answer.drain()
                        break
            except BrokenAnswerError as error:
                reading.fail(error.fault)
        if deltas := reading.close():
            yield deltas
        yield (self._told(reading.complete()),)

    @asynccontextmanager
    async def _opened(self, request: ModelRequest) -> AsyncGenerator[Answer, None]:
        async with AsyncExitStack() as stack:
            body = self._body(request)
            while True:
                try:
                    post = self._upstream.post("/chat/completions", body)
                    answer = await stack.enter_async_context(post)
                    break
                except ProviderError as error:
                    self._flip_refused(request.model, error)
                    former, body = body, self._body(request)
                    if body == former:
                        raise
            yield answer

    def _body(self, request: ModelRequest) -> bytes:
        options = self._quirks.options ^ self._flipped.get(request.model, frozenset())
        return body_of(request, provider=self.name, quirks=self._quirks, options=options)

    def _flip_refused(self, model: str, error: ProviderError) -> None:
        """Leave out, or send, what the refusal names; once for each model and option."""
        if error.fault.status in (400, 422) and (option := option_named(error.fault.message or "")):
            self._flipped[model] = self._flipped.get(model, frozenset()) | {option}

    def _told(self, completion: Completion) -> Completion:
        """The completion whose fault has words for the person and no key in them."""
        fault = completion.fault
        if fault is None:
            return completion
        if fault.message is None:
            text = _TOLD.get(fault.type, "{label} failed without saying why.")
            fault = replace(fault, message=text.format(label=self._upstream.endpoint.label))
        return replace(completion, fault=self._upstream.redacted(fault))


class _Reading:
    """The body of one answer, whichever of its forms it has: events, or one JSON object."""

    def __init__(self, request: ModelRequest, tags: ThinkTags | None) -> None:
        self._tags = tags
        self._assembler = Assembler(known_tools=frozenset(spec.name for spec in request.tools))
        self._decoder = EventDecoder()
        self._json: list[bytes] = []
        self._begun = False
        self._size = 0

    @property
    def finished(self) -> bool:
        return self._assembler.finished

    @property
    def ended(self) -> bool:
        return self._assembler.ended

    def take(self, read: bytes) -> tuple[Delta, ...]:
        self._size += len(read)
        if self._size > MAX_ANSWER_BYTES:
            self._assembler.fail(Fault("stream_too_large"))
            return ()
        if not self._begun:
            self._begin(read.lstrip()[:1])
        if self._json:
            self._json.append(read)
            return ()
        try:
            deltas = self._assembler.feed(self._decoder.feed(read))
            return self._tags.take(deltas) if self._tags else deltas
        except EventTooLargeError:
            self._assembler.fail(Fault("stream_too_large"))
            return ()

    def fail(self, fault: Fault) -> None:
        self._assembler.fail(fault)

    def close(self) -> tuple[Delta, ...]:
        """What the end of the body adds."""
        if self._json:
            deltas = self._assembler.feed_body(b"".join(self._json))
        else:
            deltas = self._assembler.feed(self._decoder.close())
        return self._tags.take(deltas) + self._tags.close() if self._tags else deltas

    def complete(self) -> Completion:
        completion = self._assembler.complete()
        return self._tags.complete(completion) if self._tags else completion

    def _begin(self, first: bytes) -> None:
        """No field of an event stream begins with a brace, and no content type is reliable."""
        self._begun = bool(first)
        if first in (b"{", b"["):
            self._json.append(b"")
        elif first == b"<":
            self._assembler.fail(Fault("not_an_api"))
