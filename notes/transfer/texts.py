"""Bytes from outside as text: which encoding they are in, or what they are if not text."""

from __future__ import annotations

import codecs
import re

from notes.transfer.exceptions import FileRefused

_KINDS = (
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "an image, sound or film"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
)
#: With these, bytes that are not UTF-8 are no text of an old Windows program either.
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")


def decoded(data: bytes) -> tuple[str, str]:
    """The text, and a remark where its encoding had to be guessed."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return _strict(data, encoding), ""
    if b"\0" not in data:
        try:
            return data.decode(), ""
        except UnicodeDecodeError:
            pass
        if not _CONTROLS.search(data):
            try:
                return data.decode("cp1252"), "Read as Windows-1252: it is not UTF-8."
            except UnicodeDecodeError:
                pass
    raise FileRefused(f"This is {_kind(data)}, not text.")


def _strict(data: bytes, encoding: str) -> str:
    try:
        text = data.decode(encoding)
        text.encode()
    except UnicodeError:
        raise FileRefused("The text is damaged: it is not in the encoding it names.") from None
    if "\0" in text:
        raise FileRefused("The text has null characters.")
    return text


def _kind(data: bytes) -> str:
    return next((kind for mark, kind in _KINDS if data.startswith(mark)), "binary data")
