"""A vendor's server for Notewire as a process: it holds its answers, or asks for a tool.

Speaks as much of OpenAI's format as Notewire reads, on an event loop and a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

FIRST, REST = "Once ", "upon a time."
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: close\r\n\r\n"
)
END = b"data: [DONE]\n\n"


class Upstream:
    """Says a word, then nothing until ``release``; with ``call`` it asks for that tool instead.

    ``held`` is how many answers are open; ``gone`` tells when each of those that a client hung up
    on was noticed, by ``time.perf_counter``.
    """

    def __init__(self, call: tuple[str, dict[str, Any]] | None = None) -> None:
        self.held = 0
        self.gone: queue.SimpleQueue[float] = queue.SimpleQueue()
        self.url = ""
        self._call = call
        self._loop = asyncio.new_event_loop()
        self._gate = asyncio.Event()
        self._end = asyncio.Event()

    def release(self) -> None:
        """Let all answers go on, those to come included."""
        self._loop.call_soon_threadsafe(self._gate.set)

    @contextmanager
    def served(self) -> Iterator[Upstream]:
        ready = threading.Event()
        thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self._serve(ready),), name="upstream"
        )
        thread.start()
        assert ready.wait(30)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._end.set)
            thread.join(30)
            self._loop.close()

    async def _serve(self, ready: threading.Event) -> None:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1024)
        host, port = server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}/v1"
        ready.set()
        await self._end.wait()
        server.close()
        answers = asyncio.all_tasks() - {asyncio.current_task()}
        for answer in answers:
            answer.cancel()
        await asyncio.gather(*answers, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await _body_of(reader)
            writer.write(HEAD)
            if self._call is not None:
                _write_all(writer, self._reply(asked, *self._call))
            else:
                await self._hold(reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.held += 1
        _write(writer, _delta({"content": FIRST}))
        hangup = asyncio.create_task(reader.read(1))
        gate = asyncio.create_task(self._gate.wait())
        try:
            await asyncio.wait((hangup, gate), return_when=asyncio.FIRST_COMPLETED)
            if hangup.done():
                self.gone.put(time.perf_counter())
                return
            _write_all(writer, (_delta({"content": REST}), _delta({}, "stop")))
        finally:
            hangup.cancel()
            gate.cancel()
            await asyncio.gather(hangup, gate, return_exceptions=True)
            self.held -= 1

    def _reply(self, asked: dict[str, Any], name: str, arguments: dict[str, Any]) -> list[bytes]:
        if asked["messages"][-1]["role"] == "tool":
            return [_delta({"content": "Done."}), _delta({}, "stop")]
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        return [_delta({"tool_calls": [call]}), _delta({}, "tool_calls")]


async def _body_of(reader: asyncio.StreamReader) -> dict[str, Any]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    asked: dict[str, Any] = json.loads(await reader.readexactly(length))
    return asked


def _delta(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    body = {"id": "1", "object": "chat.completion.chunk", "model": "held", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _write_all(writer: asyncio.StreamWriter, parts: list[bytes] | tuple[bytes, ...]) -> None:
    for part in (*parts, END):
        _write(writer, part)
    writer.write(b"0\r\n\r\n")
