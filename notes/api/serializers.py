"""The shapes of what REST takes and gives; what a value may hold is decided by the services."""

from __future__ import annotations

from typing import Any, ClassVar, get_args
from uuid import UUID

from rest_framework import serializers

from notes.exceptions import NoteInvalid
from notes.folders import folder_normalised
from notes.models import Note
from notes.rules import language_checked, title_checked
from notes.search import MAX_LIMIT, MAX_OFFSET, SearchMode
from notes.selectors import ListedNote
from notes.services import UpdateMode, source_checked
from notes.tags import MAX_TAGS, tags_normalised
from web.fields import ExactTextField, OneOfField, ShortListField
from web.serializers import ClosedSerializer, rule


class NoteSerializer(serializers.ModelSerializer[Note]):
    class Meta:
        model = Note
        fields: ClassVar[list[str]] = [
            "id",
            "title",
            "content",
            "folder",
            "tags",
            "language",
            "version",
            "source_conversation",
            "source_message",
            "from_outside",
            "created",
            "updated",
        ]
        read_only_fields: ClassVar[list[str]] = fields


class _NoteFieldsSerializer(ClosedSerializer):
    passed_over: ClassVar = NoteSerializer.Meta.fields

    title = ExactTextField(required=False, validators=[rule(title_checked, NoteInvalid)])
    content = ExactTextField(required=False, help_text="Markdown, at most 5 MiB of UTF-8.")
    folder = ExactTextField(
        required=False,
        validators=[rule(folder_normalised, NoteInvalid)],
        help_text="As `/a/b/`; `/` is the root.",
    )
    tags = ShortListField(
        child=ExactTextField(),
        max_length=MAX_TAGS,
        required=False,
        validators=[rule(tags_normalised, NoteInvalid)],
    )
    language = ExactTextField(
        required=False,
        validators=[rule(language_checked, NoteInvalid)],
        help_text="A text search configuration of PostgreSQL, as `german`.",
    )


class _OwnSource:
    """What a note comes from is its owner's own."""

    requires_context = True

    def __call__(self, value: UUID, field: serializers.Field[Any, Any, Any, Any]) -> None:
        owner, name = field.context["request"].user, str(field.field_name)
        try:
            source_checked(owner=owner, field=name, source_id=value)
        except NoteInvalid as error:
            raise serializers.ValidationError(error.message, error.code) from None


class NoteCreateSerializer(_NoteFieldsSerializer):
    source_conversation = serializers.UUIDField(
        required=False, allow_null=True, validators=[_OwnSource()]
    )
    source_message = serializers.UUIDField(
        required=False, allow_null=True, validators=[_OwnSource()]
    )


class NoteUpdateSerializer(_NoteFieldsSerializer):
    """Only the fields that are sent change; `mode` says how `content` joins what is there."""

    mode = OneOfField(get_args(UpdateMode), default="replace")
    from_outside = serializers.BooleanField(
        required=False,
        help_text="`false` vouches for the note: text from outside it holds no more.",
    )

    def validate_from_outside(self, value: bool) -> bool:
        if value:
            raise serializers.ValidationError("Only false can be set: it is found out, not told.")
        return value


class ListedNoteSerializer(serializers.ModelSerializer[ListedNote]):
    """A note in a list: the beginning of its content, and its size in bytes."""

    preview = serializers.CharField(read_only=True)
    size = serializers.IntegerField(read_only=True)

    class Meta:
        model = Note
        fields: ClassVar[list[str]] = [
            "id",
            "title",
            "preview",
            "size",
            "folder",
            "tags",
            "language",
            "version",
            "created",
            "updated",
        ]
        read_only_fields: ClassVar[list[str]] = fields


class NoteFilterSerializer(ClosedSerializer):
    folder = ExactTextField(required=False, validators=[rule(folder_normalised, NoteInvalid)])
    subfolders = serializers.BooleanField(default=False)
    tag = ShortListField(
        child=ExactTextField(),
        max_length=MAX_TAGS,
        required=False,
        validators=[rule(tags_normalised, NoteInvalid)],
        help_text="Repeat it: notes that have all of them.",
    )
    updated_after = serializers.DateTimeField(required=False)
    updated_before = serializers.DateTimeField(required=False)


class SearchQuerySerializer(NoteFilterSerializer):
    q = ExactTextField(help_text='Words, "a phrase", -not, or.')
    subfolders = serializers.BooleanField(default=True)
    limit = serializers.IntegerField(min_value=1, max_value=MAX_LIMIT, default=20)
    offset = serializers.IntegerField(min_value=0, max_value=MAX_OFFSET, default=0)
    language = ExactTextField(
        required=False,
        default="",
        validators=[rule(language_checked, NoteInvalid)],
        help_text="Read the words as of this one, not as of all that the notes are in.",
    )
    typing = serializers.BooleanField(
        default=False,
        help_text="The last word is still being typed: it may go on,"
        " or is left out while it is too short.",
    )


class _MarksField(serializers.ListField):
    """Ranges of characters (code points), the end not included."""

    child = serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2)


class SearchHitSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="note_id")
    title = serializers.CharField()
    title_marks = _MarksField()
    folder = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    updated = serializers.DateTimeField()
    excerpt = serializers.CharField(help_text="Plain text: escape it.")
    marks = _MarksField(help_text="Ranges of `excerpt` that were found.")
    rank = serializers.FloatField()
    mode = serializers.ChoiceField(get_args(SearchMode), help_text="What found this note.")


class _FacetSerializer(serializers.Serializer[Any]):
    value = serializers.CharField()
    count = serializers.IntegerField()


class _FacetsSerializer(serializers.Serializer[Any]):
    folders = _FacetSerializer(many=True)
    tags = _FacetSerializer(many=True)


class SearchPageSerializer(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    total_is = serializers.ChoiceField(["exact", "at_least"])
    windowed = serializers.BooleanField(help_text="Only the newest notes were looked at.")
    facets = _FacetsSerializer(
        allow_null=True,
        help_text="Folders and tags of the hits, where these are few.",
    )
    results = SearchHitSerializer(source="hits", many=True)


class FolderCountSerializer(serializers.Serializer[Any]):
    folder = serializers.CharField()
    count = serializers.IntegerField()


class TagCountSerializer(serializers.Serializer[Any]):
    tag = serializers.CharField()
    count = serializers.IntegerField()


class LanguageSerializer(ClosedSerializer):
    """In what language a person writes, as PostgreSQL's text search names it."""

    language = ExactTextField(max_length=30, help_text="Empty to detect it from note to note.")
    languages = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="Those that the server has."
    )
