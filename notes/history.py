"""Reads of a note's revisions, each inside its owner's notes. ``recording`` writes them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from notes.diffs import FieldChange, TextDiff, field_changes, text_diff
from notes.exceptions import RevisionNotFound
from notes.models import NoteRevision
from notes.selectors import note_version

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class _Origin(TypedDict):
    conversation_id: UUID | None
    conversation_title: str | None
    message_id: UUID | None
    username: str | None


class _Whole(_Origin):
    text: str


ListedRevision: TypeAlias = "WithAnnotations[NoteRevision, _Origin]"
WholeRevision: TypeAlias = "WithAnnotations[NoteRevision, _Whole]"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed up to ``revision``: everything, where there is nothing it is ``against``."""

    revision: WholeRevision
    against: int | None
    fields: tuple[FieldChange, ...]
    content: TextDiff


def revision_list(
    *, owner: AbstractBaseUser, note_id: UUID, binned_too: bool = False
) -> QuerySet[ListedRevision]:
    """The newest first, without contents; with the answer that an assistant changed it in."""
    note_version(owner=owner, note_id=note_id, binned_too=binned_too)
    return _revisions(owner, note_id, binned_too=binned_too)


def revision_get(
    *, owner: AbstractBaseUser, note_id: UUID, version: int, binned_too: bool = False
) -> WholeRevision:
    """One revision with ``text``, its content; read in one statement, as contents move on."""
    note_version(owner=owner, note_id=note_id, binned_too=binned_too)
    found = _revisions(owner, note_id, binned_too=binned_too).filter(version=version)
    revision = _with_text(found).first()
    if revision is None:
        raise RevisionNotFound
    return revision


def revision_compare(
    *,
    owner: AbstractBaseUser,
    note_id: UUID,
    version: int,
    against: int | None = None,
    binned_too: bool = False,
) -> Comparison:
    """A revision beside the one of version ``against``, or the one before it."""
    get = partial(revision_get, owner=owner, note_id=note_id, binned_too=binned_too)
    revision = get(version=version)
    if against is None:
        before = _revisions(owner, note_id, binned_too=binned_too).filter(version__lt=version)
        earlier = _with_text(before).first()
    else:
        earlier = get(version=against)
    return Comparison(
        revision=revision,
        against=earlier.version if earlier else None,
        fields=field_changes(earlier, revision) if earlier else (),
        content=text_diff(earlier.text if earlier else "", revision.text),
    )


def versions_before(
    *, note_id: UUID, version: int, conversation_id: UUID | None, call_ids: Collection[str]
) -> list[int]:
    """The versions before ``version``, as far back as these calls made all the changes since."""
    if conversation_id is None or not call_ids:
        return []
    rows = NoteRevision.objects.filter(note_id=note_id, version__lte=version)
    calls = rows.order_by("-version").values_list(
        "version", "tool_call__conversation_id", "tool_call__call_id"
    )
    found: list[int] = []
    for number, conversation, call in calls[: len(call_ids)]:
        is_theirs = conversation == conversation_id and call in call_ids
        if not is_theirs or number != version - len(found):
            break
        found.append(number - 1)
    return found


def _revisions(
    owner: AbstractBaseUser, note_id: UUID, *, binned_too: bool = False
) -> QuerySet[ListedRevision]:
    revisions = NoteRevision.objects.filter(note_id=note_id, note__owner_id=owner.pk)
    if not binned_too:
        revisions = revisions.filter(note__deleted__isnull=True)
    shown = revisions.defer("content").annotate(
        conversation_id=F("run__conversation_id"),
        conversation_title=F("run__conversation__title"),
        message_id=F("tool_call__message_id"),
        username=F("user__username"),
    )
    return cast("QuerySet[ListedRevision]", shown.order_by("-version"))


def _with_text(revisions: QuerySet[ListedRevision]) -> QuerySet[WholeRevision]:
    """A content that is null is the next one that is not, or the note's own."""
    later = NoteRevision.objects.filter(
        note_id=OuterRef("note_id"), version__gte=OuterRef("version"), content__isnull=False
    )
    text = Coalesce(Subquery(later.order_by("version").values("content")[:1]), F("note__content"))
    return cast("QuerySet[WholeRevision]", revisions.annotate(text=text))
