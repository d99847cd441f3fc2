"""What the demo provider understands and what it does about it: pure functions over the history.

A request in plain English becomes steps; ``next_turn`` plays them against the tool results that
are already in the history and gives the next thing to say. Nothing is remembered between calls,
so a run that is taken on elsewhere goes on as if nothing had happened. Streaming, pace and token
counts belong to ``demo``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeAlias

from chat.types import (
    AssistantMessage,
    HistoryMessage,
    ModelRequest,
    ToolMessage,
    UserMessage,
)

#: Longer texts are no commands; the limit also bounds what the patterns have to look at.
LONGEST_COMMAND = 4000

ABOUT = """\
I am Notewire's **demo**: scripted answers, no language model. My tool calls are real, though. Try

- make a note called Groceries with milk and eggs, then find it
- find groceries
- read Groceries
- append "bread" to Groceries
- list my notes
- what time is it?

To talk to a model, set `OPENAI_API_KEY`, or `OPENAI_BASE_URL` for any server that speaks \
OpenAI's API (`OLLAMA_BASE_URL`, `LMSTUDIO_BASE_URL` and `LLAMACPP_BASE_URL` for those on your own \
machine), and start Notewire again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The next thing to say, and the tool to call after it, if any."""

    text: str
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


ALL_SAID = "That was all."

Script: TypeAlias = Generator[Turn, ToolMessage, str]
Step: TypeAlias = "Callable[[_Scene], Script]"


class _CannotGoOn(Exception):
    """A step failed; the text tells the person why, and later steps are dropped."""


class _Denied(Exception):
    """The person does not want a step; the text repeats what they said, and later steps follow."""


@dataclass(slots=True)
class _Scene:
    """What the steps of one request know of each other: the note that "it" stands for."""

    offered: frozenset[str]
    title: str = ""
    note_id: str = ""

    def call(self, tool: str, say: str, **arguments: Any) -> Generator[Turn, ToolMessage, str]:
        if tool not in self.offered:
            raise _CannotGoOn(f"For this I would call `{tool}`, but it is not offered to me here.")
        result = yield Turn(say, tool, arguments)
        if result.is_error and (denied := _DENIED.match(result.content)):
            reason = _short(denied["reason"] or "")
            raise _Denied(f"You denied {tool}: {reason}" if reason else f"You denied {tool}.")
        if result.is_error:
            raise _CannotGoOn(f"`{tool}` did not work: {_short(result.content)}")
        return result.content

    def meant(self, title: str) -> str:
        return self.title if title.lower() in {"it", "that", "that note", "this"} else title

    def find(self, title: str) -> Generator[Turn, ToolMessage, dict[str, Any]]:
        """The note that ``title`` names, by search unless it is the one just handled."""
        title = self.meant(title)
        if self.note_id and title == self.title:
            return {"id": self.note_id, "title": self.title}
        found = yield from self.call("note_search", f"I look for **{title}**.", query=title)
        hits = _rows(found)
        if not hits:
            raise _CannotGoOn(f"I found no note for **{title}**.")
        exact = [hit for hit in hits if str(hit.get("title", "")).lower() == title.lower()]
        note = (exact or hits)[0]
        self.note_id, self.title = str(note.get("id", "")), str(note.get("title", title))
        return note


def next_turn(request: ModelRequest) -> Turn:
    """What to say now, given the last user message and the tool results since then."""
    text, results, said = _asked(request.messages)
    turn = _turn(request, text, results)
    return replace(turn, text=_rest(turn, said)) if said else turn


def _turn(request: ModelRequest, text: str, results: list[ToolMessage]) -> Turn:
    offered = frozenset(spec.name for spec in request.tools)
    script = _play(_steps(text), _Scene(offered))
    done = 0
    try:
        turn = next(script)
        for result in results:
            turn = script.send(result)
            done += 1
    except StopIteration as end:
        return Turn(str(end.value))
    if request.tool_choice == "none":
        return Turn(f"I stop here after {done} tool calls, because no more are allowed for now.")
    return turn


def _asked(messages: tuple[HistoryMessage, ...]) -> tuple[str, list[ToolMessage], str]:
    """What the person asked for, the results since then, and what was said since the last of them.

    A request to continue, which is also what a stopped answer is carried on with, means the one
    before it.
    """
    results: list[ToolMessage] = []
    said: list[str] = []
    for index, message in reversed(tuple(enumerate(messages))):
        if isinstance(message, ToolMessage):
            results.append(message)
        elif isinstance(message, AssistantMessage) and not results:
            said.append(message.text)
        elif isinstance(message, UserMessage) and not _means_earlier(message, messages[:index]):
            return message.text, results[::-1], "".join(said[::-1])
    return "", results[::-1], ""


def _means_earlier(message: UserMessage, earlier: tuple[HistoryMessage, ...]) -> bool:
    return bool(_CONTINUE.fullmatch(message.text)) and any(
        isinstance(each, UserMessage) for each in earlier
    )


def _rest(turn: Turn, said: str) -> str:
    """What is left of the text to say; all of it where something else was said."""
    signs = "".join(said.split())
    if not "".join(turn.text.split()).startswith(signs):
        return turn.text
    places = (place for place, sign in enumerate(turn.text) if not sign.isspace())
    left = next(islice(places, len(signs), None), len(turn.text))
    return turn.text[left:] or ("" if turn.tool else ALL_SAID)


def _play(steps: list[Step], scene: _Scene) -> Script:
    lines = []
    try:
        for step in steps:
            try:
                line = yield from step(scene)
            except _Denied as denied:
                line = str(denied)
            lines.append(line)
    except _CannotGoOn as reason:
        lines.append(str(reason))
    return "\n\n".join(lines)


def _create(title: str, content: str) -> Step:
    def step(scene: _Scene) -> Script:
        scene.title, scene.note_id = title, ""
        created = yield from scene.call(
            "note_create", f"I make the note **{title}**.", title=title, content=content
        )
        scene.note_id = next((str(row["id"]) for row in _rows(created) if row.get("id")), "")
        return f"The note **{title}** is made."

    return step


def _find(query: str) -> Step:
    def step(scene: _Scene) -> Script:
        wanted = scene.meant(query)
        found = yield from scene.call("note_search", f"I search for **{wanted}**.", query=wanted)
        hits = _rows(found)
        if not hits:
            return f"I found nothing for **{wanted}**."
        scene.title, scene.note_id = str(hits[0].get("title", wanted)), str(hits[0].get("id", ""))
        return f"Found for **{wanted}**:\n\n{_bullets(hits)}"

    return step


def _read(title: str) -> Step:
    def step(scene: _Scene) -> Script:
        note = yield from scene.find(title)
        name = note.get("title", title)
        content = yield from scene.call(
            "note_read", f"I open **{name}**.", note_id=str(note.get("id", ""))
        )
        row = next(iter(_rows(content)), {})
        text = str(row.get("content", content)).strip()
        return f"**{name}** says:\n\n{text or '*(nothing yet)*'}"

    return step


def _append(text: str, title: str) -> Step:
    def step(scene: _Scene) -> Script:
        note = yield from scene.find(title)
        name = note.get("title", title)
        yield from scene.call(
            "note_update",
            f"I add that to **{name}**.",
            note_id=str(note.get("id", "")),
            mode="append",
            content="\n" + _body(text, listed=True),
        )
        return f"Added to **{name}**: {_short(_clean(text))}"

    return step


def _list() -> Step:
    def step(scene: _Scene) -> Script:
        notes = _rows((yield from scene.call("note_list", "I list your notes.")))
        return f"Your notes:\n\n{_bullets(notes)}" if notes else "There are no notes yet."

    return step


def _time() -> Step:
    def step(scene: _Scene) -> Script:
        told = yield from scene.call("current_time", "I look at the clock.")
        row = next(iter(_rows(told)), {})
        return f"It is {row.get('weekday', '')} {row.get('time') or _short(told)}."

    return step


def _about() -> Step:
    def step(scene: _Scene) -> Script:
        yield from ()
        return ABOUT

    return step


#: The result of a call that a person denied.
_DENIED = re.compile(
    r"Denied by the person(?:: (?P<reason>.*?)|\.)(?:\nDo not repeat the call\..*)?\Z", re.DOTALL
)
_CONTINUE = re.compile(r"\s*(?:continue|go on)[\s.!]*", re.IGNORECASE)
_QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”|`([^`]*)`')
_VERB = r"(?:make|create|write|find|search|read|open|show|append|add|put|list)"
_BREAK = re.compile(
    rf"[.;,]?\s+(?:and\s+)?then\s+|[,;]?\s+and\s+(?={_VERB}\s)|[.;]\s+(?={_VERB}\s)", re.IGNORECASE
)
_POLITE = re.compile(r"^(?:(?:please|can you|could you|would you|now|and|then)\b[ ,]*)+", re.I)

_GRAMMAR: tuple[tuple[re.Pattern[str], Callable[..., Step]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), make)
    for pattern, make in (
        (
            r"(?:make|create|write|add|start)(?: me)? (?:a |an |the |another )?(?:new )?note"
            r"(?:,? (?:called|named|titled|about))? (?P<title>\S.*?)"
            r"(?:(?:,? (?:with|containing|saying|that says) |: ?)(?P<content>.*))?",
            lambda title, content: _create(_clean(title), _body(content or "")),
        ),
        (
            r"(?:list|show)(?: me)?(?: all)?(?: of)?(?: my| the)? notes|what notes .*|notes",
            lambda: _list(),
        ),
        (
            r"(?:find|search|look)(?: for| up)?(?: my| the| all| a)?(?: notes?)?"
            r"(?: about| for| called| named| with)? (?P<query>\S.*)",
            lambda query: _find(_clean(query)),
        ),
        (
            r"(?:append|add|put) (?P<text>\S.*) (?:to|onto|into|in|on)(?: my| the)?"
            r"(?: note)?(?: called| named)? (?P<title>\S.*)",
            lambda text, title: _append(text, _clean(title)),
        ),
        (r".*\bwhat(?:'s| is)? (?:the )?(?:time|date|day)\b.*", lambda: _time()),
        (
            r"(?:read|open|show)(?: me)?(?: my| the)?(?: note)?(?: called| named)? (?P<title>\S.*)",
            lambda title: _read(_clean(title)),
        ),
    )
)


def _steps(text: str) -> list[Step]:
    """The steps that a request asks for; a part that is not understood ends them with the help."""
    if len(text) > LONGEST_COMMAND:
        return [_about()]
    quotes: list[str] = []

    def hide(match: re.Match[str]) -> str:
        quotes.append(match[0])
        return f"\0{len(quotes) - 1}\0"

    hidden = _QUOTED.sub(hide, text.replace("\0", "").strip())
    steps = []
    for part in _BREAK.split(hidden):
        plain = re.sub(r"\0(\d+)\0", lambda found: quotes[int(found[1])], part)
        step = _step(_POLITE.sub("", plain.strip()).rstrip(" .!?;,"))
        steps.append(step or _about())
        if step is None:
            break
    return steps


def _step(command: str) -> Step | None:
    for pattern, make in _GRAMMAR:
        if match := pattern.fullmatch(command):
            return make(**match.groupdict())
    return None


def _clean(text: str) -> str:
    """A title or text as meant: without the quotes around it."""
    text = text.strip(" .!?;,\n")
    match = _QUOTED.fullmatch(text)
    return next(part for part in match.groups() if part is not None) if match else text


def _body(text: str, *, listed: bool = False) -> str:
    """A note's content: short items become a list, quoted and longer text stays as it is."""
    clean = _clean(text)
    quoted = clean != text.strip(" .!?;,\n")
    items = [clean] if quoted else re.split(r",\s*(?:and\s+)?|\s+and\s+", clean)
    items = [item.strip() for item in items if item.strip()]
    if "\n" in clean or any(len(item.split()) > 4 for item in items):
        return clean
    return "\n".join(f"- {item}" for item in items) if listed or len(items) > 1 else clean


def _rows(content: str) -> list[dict[str, Any]]:
    """The objects of a tool's JSON result: its list of rows, or itself where it is one object."""
    try:
        value = json.loads(content)
    except ValueError:
        return []
    if isinstance(value, dict):
        lists = [part for part in value.values() if isinstance(part, list)]
        value = lists[0] if lists and "id" not in value else [value]
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _bullets(rows: list[dict[str, Any]]) -> str:
    shown = [f"- **{row.get('title') or 'Untitled'}**{_excerpt(row)}" for row in rows[:10]]
    more = len(rows) - len(shown)
    return "\n".join(shown + ([f"- and {more} more"] if more > 0 else []))


def _excerpt(row: dict[str, Any]) -> str:
    excerpt = row.get("excerpt")
    return f": {_short(excerpt)}" if isinstance(excerpt, str) and excerpt.strip() else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:200] + "…"
