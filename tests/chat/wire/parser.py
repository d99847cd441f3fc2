"""Server-sent events as a browser's ``EventSource`` reads them, and as a careless client does."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass
class Event:
    name: str
    data: str
    id: str

    @property
    def json(self) -> Any:
        return json.loads(self.data)


def parse(stream: bytes, *, careless: bool = False) -> list[Event]:
    """``careless`` splits lines as ``str.splitlines`` does, at every separator of Unicode."""
    text = stream.decode()
    lines = text.splitlines() if careless else text.replace("\r\n", "\n").split("\n")
    events: list[Event] = []
    data: list[str] = []
    name = last_id = ""
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                events.append(Event(name or "message", "\n".join(data), last_id))
            name, data = "", []
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            last_id = value
    return events
