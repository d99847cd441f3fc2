"""What a conversation has seen of a note: the ground on which a model may replace its text.

A model reads a long note in parts. Only parts that join from the start on count, and only of one
version: a text that nobody in this conversation saw cannot be lost by it.
"""

from __future__ import annotations

from uuid import UUID

from notes.models import Note, NoteSeen


def seen_whole_version(*, conversation_id: UUID, note_id: UUID) -> int | None:
    """The version that the conversation knows from start to end, if there is one."""
    return (
        NoteSeen.objects.filter(conversation_id=conversation_id, note_id=note_id, whole=True)
        .values_list("version", flat=True)
        .first()
    )


def seen_read(*, conversation_id: UUID, note: Note, start: int, end: int, total: int) -> None:
    """Take down that the characters from ``start`` to ``end`` of this version were read."""
    seen, _ = NoteSeen.objects.get_or_create(
        conversation_id=conversation_id, note=note, defaults={"version": note.version}
    )
    if seen.version != note.version:
        seen.version, seen.seen_to, seen.whole = note.version, 0, False
    if start <= seen.seen_to:
        seen.seen_to = max(seen.seen_to, end)
        seen.whole = seen.whole or seen.seen_to >= total
    seen.save()


def seen_written(*, conversation_id: UUID, note: Note, whole: bool) -> None:
    """Take down a change that made this version: ``whole`` where all of its text was written.

    Whoever knew all of the version before knows all of this one.
    """
    now = {"version": note.version, "seen_to": len(note.content), "whole": True}
    if whole:
        NoteSeen.objects.update_or_create(conversation_id=conversation_id, note=note, defaults=now)
    else:
        NoteSeen.objects.filter(
            conversation_id=conversation_id, note=note, version=note.version - 1, whole=True
        ).update(**now)
