"""The note form: what the browser sends, as the services take it. Rules are the services' own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

from django import forms

from notes.exceptions import NoteError, NoteInvalid, NoteTooLarge
from notes.folders import folder_normalised
from notes.languages import language_choices
from notes.line_breaks import line_breaks_alike, line_breaks_kept
from notes.models import Note
from notes.parts import Part
from notes.rules import MAX_TITLE
from notes.tags import tags_normalised
from web.serializers import rule

FIELDS = ("title", "folder", "tags", "language", "content")
#: More than all tags of a note can take, quoted.
MAX_TAGS_TEXT = 20_000
_TAG = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"\s*(?=,|$)|(?P<plain>[^,]*))(?:,|$)')


def tags_read(text: str) -> list[str]:
    """Tags between commas; one that holds a comma stands in quotes, and a quote in it twice."""
    tags = [
        match["plain"] if match["quoted"] is None else match["quoted"].replace('""', '"')
        for match in _TAG.finditer(text)
    ]
    return [stripped for tag in tags if (stripped := tag.strip())]


def tags_written(tags: Iterable[str]) -> str:
    """What ``tags_read`` reads as these."""
    return ", ".join(
        '"{}"'.format(tag.replace('"', '""')) if "," in tag or tag.startswith('"') else tag
        for tag in tags
    )


class NoteForm(forms.Form):
    """``version`` is the one that the person began to edit; absent for a new note. ``start`` and
    ``end`` say of which characters of its content the text is, where it is not all of it."""

    title = forms.CharField(
        required=False,
        max_length=MAX_TITLE,
        widget=forms.TextInput(attrs={"placeholder": "Title", "autocomplete": "off"}),
    )
    folder = forms.CharField(
        required=False,
        validators=[rule(folder_normalised, NoteInvalid)],
        widget=forms.TextInput(
            attrs={"list": "folders", "placeholder": "/", "autocomplete": "off"}
        ),
    )
    tags = forms.CharField(
        required=False,
        max_length=MAX_TAGS_TEXT,
        widget=forms.TextInput(attrs={"placeholder": "tag, another tag", "autocomplete": "off"}),
    )
    language = forms.ChoiceField(required=False)
    content = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"placeholder": "Write in Markdown", "rows": 18}),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    start = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)
    end = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, note: Note | None = None, **options: Any) -> None:
        """``note``: the one to change, as it is stored now."""
        super().__init__(data, **options)
        choices = [("", "Detected"), *language_choices()[1:]]
        if note is not None and note.language not in dict(choices):
            choices.append((note.language, note.language.title()))
        cast("forms.ChoiceField", self.fields["language"]).choices = choices

    @property
    def is_part(self) -> bool:
        return bool(self["end"].value())

    def clean_content(self) -> str:
        """Browsers send every line break as CRLF; a note holds what the person typed."""
        content: str = self.cleaned_data["content"]
        return line_breaks_alike(content)

    def clean_tags(self) -> list[str]:
        tags = tags_read(self.cleaned_data["tags"])
        rule(tags_normalised, NoteInvalid)(tags)
        return tags

    def fields_of_note(self) -> dict[str, Any]:
        """All that a new note needs."""
        return {name: self.cleaned_data[name] for name in FIELDS}

    def changes_of(self, note: Note) -> dict[str, Any]:
        """The fields that the person changed, of ``note`` at the version they began with."""
        given = given_by(note, self._range(note))
        changed = {
            name: self.cleaned_data[name]
            for name in FIELDS
            if name in self.data and _as_sent(name, self.data[name]) != _as_sent(name, given[name])
        }
        if "content" in changed:
            changed["content"] = self._content(note)
        return changed

    def end_in(self, saved: Note, before: Note) -> int | None:
        """Where the part ends in the note that was saved."""
        if not self.is_part:
            return None
        return self._range(before)[1] + len(saved.content) - len(before.content)

    def _content(self, note: Note) -> str:
        start, end = self._range(note)
        text = line_breaks_kept(note.content[start:end], self.cleaned_data["content"])
        return f"{note.content[:start]}{text}{note.content[end:]}"

    def _range(self, note: Note) -> tuple[int, int]:
        if not self.is_part:
            return 0, len(note.content)
        return self.cleaned_data["start"] or 0, self.cleaned_data["end"]

    def take_error(self, error: NoteError) -> None:
        """Show what a service refused beside the field that it is about."""
        match error:
            case NoteInvalid(field=field) if field in self.fields:
                self.add_error(field, error.message)
            case NoteTooLarge():
                self.add_error("content", error.message)
            case _:
                self.add_error(None, error.message)


def form_of(note: Note, *, part: Part | None = None) -> NoteForm:
    """The form of a note, or of one part of its content and all else."""
    start, end = (part.start, part.end) if part else (0, len(note.content))
    initial = given_by(note, (start, end)) | {"version": note.version}
    if part:
        initial |= {"start": start, "end": end}
    return NoteForm(note=note, initial=initial)


def given_by(note: Note, span: tuple[int, int]) -> dict[str, Any]:
    """What the form of a note is given to show."""
    return {
        "title": note.title,
        "folder": note.folder,
        "tags": tags_written(note.tags),
        "language": note.language,
        "content": note.content[span[0] : span[1]],
    }


def _as_sent(name: str, text: str) -> str:
    """What a browser sends of a text that nobody changed, line breaks alike."""
    return line_breaks_alike(text) if name == "content" else re.sub(r"[\r\n]", "", text)
