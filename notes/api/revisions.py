"""The shapes of history: revisions, their differences, and what is in the bin."""

from __future__ import annotations

from typing import Any, ClassVar, get_args

from rest_framework import serializers

from notes.api.serializers import ListedNoteSerializer
from notes.authors import AuthorKind, Via
from notes.diffs import Detail, Kind
from notes.history import Comparison
from notes.models import Change
from web.serializers import ClosedSerializer


class BinnedNoteSerializer(ListedNoteSerializer):
    """As in the list of notes, and since when it is in the bin."""

    class Meta(ListedNoteSerializer.Meta):
        fields: ClassVar[list[str]] = [*ListedNoteSerializer.Meta.fields, "deleted"]
        read_only_fields: ClassVar[list[str]] = fields


class RevisionAuthorSerializer(serializers.Serializer[Any]):
    """Who made a change and through which door; ids are null for what is not there any more."""

    kind = serializers.ChoiceField(get_args(AuthorKind), source="author_kind")
    user = serializers.CharField(source="username", allow_null=True)
    via = serializers.ChoiceField(
        ["", *get_args(Via)], help_text="Empty for a state that nobody recorded."
    )
    token_id = serializers.UUIDField(allow_null=True)
    token_name = serializers.CharField()
    run = serializers.UUIDField(source="run_id", allow_null=True)
    tool_call = serializers.UUIDField(source="tool_call_id", allow_null=True)
    conversation = serializers.UUIDField(source="conversation_id", allow_null=True)
    message = serializers.UUIDField(source="message_id", allow_null=True)


class RevisionSerializer(serializers.Serializer[Any]):
    """The state of a note at one of its versions, without its content."""

    version = serializers.IntegerField()
    change = serializers.ChoiceField(Change.choices)
    restored_version = serializers.IntegerField(allow_null=True)
    title = serializers.CharField()
    folder = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    language = serializers.CharField()
    author = RevisionAuthorSerializer(source="*")
    created = serializers.DateTimeField()


class FieldChangeSerializer(serializers.Serializer[Any]):
    field = serializers.CharField()
    before = serializers.JSONField(help_text="A text; of `tags`, a list of texts.")
    after = serializers.JSONField()


class DiffLineSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(get_args(Kind))
    text = serializers.CharField(help_text="Plain text: escape it.")
    marks = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2),
        help_text="Ranges of `text` (code points, end not included) that changed within the line.",
    )


class HunkSerializer(serializers.Serializer[Any]):
    old_start = serializers.IntegerField()
    new_start = serializers.IntegerField()
    lines = DiffLineSerializer(many=True)


class TextDiffSerializer(serializers.Serializer[Any]):
    detail = serializers.ChoiceField(
        get_args(Detail), help_text="`lines`: without marks; `summary`: too large for hunks."
    )
    added = serializers.IntegerField(help_text="Lines.")
    removed = serializers.IntegerField(help_text="Lines.")
    hunks = HunkSerializer(many=True)


class RevisionDiffSerializer(serializers.Serializer[Any]):
    against = serializers.IntegerField(allow_null=True)
    fields = FieldChangeSerializer(many=True)  # type: ignore[assignment]  # the wire's own word
    content = TextDiffSerializer()


class WholeRevisionSerializer(RevisionSerializer):
    """A revision with its content, and what changed since the one that it is compared to."""

    content = serializers.CharField()
    diff = RevisionDiffSerializer()

    @classmethod
    def body(cls, found: Comparison) -> dict[str, Any]:
        revision = RevisionSerializer(found.revision).data
        diff = RevisionDiffSerializer(found).data
        return {**revision, "content": found.revision.text, "diff": diff}


class RevisionQuerySerializer(ClosedSerializer):
    against = serializers.IntegerField(
        required=False,
        min_value=1,
        help_text="The version to compare with; without it, the revision before.",
    )
