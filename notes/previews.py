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
_OPEN_END = "\n\\ No newline at end of file"
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
    diff = _diff(note.content, _changed(note.content, mode, content, old_text))
    text = f"{_VERBS[mode]} “{name_shown(note.title.strip())}” in {note.folder}"
    lines = "1 line" if diff.added == 1 else f"{diff.added} lines"
    return Preview(
        text=f"{text}: {lines} added, {diff.removed} removed.",
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
    """As `diff -u` has it, where a newline ends a line and begins none.

    That a text does not end with one is marked only where the two differ in it: it is so of most
    notes, and a last line that stays is not to look removed and added.
    """
    unlike = _is_open(before) != _is_open(after)
    return lines_diff(_text_lines(before, marked=unlike), _text_lines(after, marked=unlike))


def _is_open(text: str) -> bool:
    return bool(text) and not text.endswith("\n")


def _text_lines(text: str, *, marked: bool) -> list[str]:
    if not _is_open(text):
        return text.split("\n")[:-1]
    lines = text.split("\n")
    if marked:
        lines[-1] += _OPEN_END
    return lines


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
