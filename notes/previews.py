"""What a tool call would do to a note, in words and as a diff, for a person who decides. Pure.

Owns the wording and the text form of a diff; how texts are compared is ``diffs``'. Whether the call
may be made is for the tools to say, which load what is shown here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from notes.diffs import Hunk, TextDiff, lines_diff
from notes.exceptions import NotePassageError
from notes.models import Note
from notes.rules import name_shown
from tools.definitions import Preview

_SIGNS = {"same": " ", "removed": "-", "added": "+"}
_VERBS = {
    "append": "Append to the end of",
    "prepend": "Put at the beginning of",
    "edit": "Change a passage of",
    "replace": "Replace the whole text of",
}


def preview_of_creation(*, title: str, content: str, folder: str, tags: Iterable[str]) -> Preview:
    tagged = ", ".join(tags)
    text = f"Make the note “{name_shown(title.strip())}” in {folder}"
    return Preview(
        text=f"{text} with the tags {tagged}." if tagged else f"{text}.",
        diff=_unified(_diff("", content)),
    )


def preview_of_update(*, note: Note, mode: str, content: str, old_text: str) -> Preview:
    """Raises ``NotePassageError`` where there is no one passage to change."""
    after = _changed(note.content, mode, content, old_text)
    diff = _diff(note.content, after)
    text = f"{_VERBS[mode]} “{name_shown(note.title.strip())}” in {note.folder}"
    lines = "1 line" if diff.added == 1 else f"{diff.added} lines"
    how = f"{lines} added, {diff.removed} removed"
    if after != note.content and not (diff.added or diff.removed):
        how = "only the line break at its end changes"
    return Preview(
        text=f"{text}: {how}.",
        diff=_unified(diff),
        version=str(note.version),
    )


def _changed(before: str, mode: str, content: str, old_text: str) -> str:
    match mode:
        case "append":
            return before + content
        case "prepend":
            return content + before
        case "edit":
            place = before.find(old_text)
            again = before.find(old_text, place + 1)
            if not old_text or place < 0 or again >= 0:
                raise NotePassageError(matches=0 if place < 0 else 2)
            return before[:place] + content + before[place + len(old_text) :]
        case _:
            return content


def _diff(before: str, after: str) -> TextDiff:
    """A newline ends a line and begins none; whether the last line has one is told in words."""
    return lines_diff(_text_lines(before), _text_lines(after))


def _text_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _unified(diff: TextDiff) -> str | None:
    """The hunks as lines with their signs; None where there is nothing to show or too much."""
    return "\n".join(line for hunk in diff.hunks for line in _lines(hunk)) or None


def _lines(hunk: Hunk) -> Iterator[str]:
    old = sum(line.kind != "added" for line in hunk.lines)
    new = sum(line.kind != "removed" for line in hunk.lines)
    yield f"@@ -{_range(hunk.old_start, old)} +{_range(hunk.new_start, new)} @@"
    for line in hunk.lines:
        yield f"{_SIGNS[line.kind]}{line.text}"


def _range(start: int, lines: int) -> str:
    """Of no lines, the one before them; of one line its number alone."""
    if lines == 1:
        return str(start)
    return f"{start if lines else start - 1},{lines}"
