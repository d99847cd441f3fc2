"""The note form: what the browser sends, as the services take it. Rules are the services' own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django import forms

from notes.exceptions import NoteError, NoteInvalid, NoteTooLarge
from notes.models import Note
from notes.rules import MAX_TITLE

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
    """``version`` is the one that the person began to edit; absent for a new note."""

    title = forms.CharField(
        required=False,
        max_length=MAX_TITLE,
        widget=forms.TextInput(attrs={"placeholder": "Title", "autocomplete": "off"}),
    )
    folder = forms.CharField(
        required=False,
        widget=forms.TextInput(
            attrs={"list": "folders", "placeholder": "/", "autocomplete": "off"}
        ),
    )
    tags = forms.CharField(
        required=False,
        max_length=MAX_TAGS_TEXT,
        widget=forms.TextInput(attrs={"placeholder": "tag, another tag", "autocomplete": "off"}),
    )
    content = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"placeholder": "Write in Markdown", "rows": 18}),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def clean_content(self) -> str:
        """Browsers send every line break as CRLF; a note holds what the person typed."""
        content: str = self.cleaned_data["content"]
        return content.replace("\r\n", "\n")

    def clean_tags(self) -> list[str]:
        return tags_read(self.cleaned_data["tags"])

    def fields_of_note(self) -> dict[str, Any]:
        names = ("title", "folder", "tags", "content")
        return {name: self.cleaned_data[name] for name in names}

    def take_error(self, error: NoteError) -> None:
        """Show what a service refused beside the field that it is about."""
        match error:
            case NoteInvalid(field=field) if field in self.fields:
                self.add_error(field, error.message)
            case NoteTooLarge():
                self.add_error("content", error.message)
            case _:
                self.add_error(None, error.message)


def form_of(note: Note) -> NoteForm:
    return NoteForm(
        initial={
            "title": note.title,
            "folder": note.folder,
            "tags": tags_written(note.tags),
            "content": note.content,
            "version": note.version,
        }
    )
