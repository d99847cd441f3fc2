"""Names of files: ones that are safe on every system and unique, and which to believe.

An export's names are for Windows, macOS and Linux alike. A name from outside is never used to
open anything: it becomes a title and a folder, and is refused where it tries to be more.
"""

from __future__ import annotations

import re
import unicodedata

from notes.folders import ROOT
from notes.transfer.exceptions import FileRefused

MAX_NAME_BYTES = 120
MAX_PATH = 2000

_UNSAFE = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]')
_RESERVED = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]|__macosx)(\..*)?", re.IGNORECASE
)
_DRIVE = re.compile(r"[A-Za-z]:")
#: The longest run of marks that is kept: normalising is quadratic in it.
_MARKS = 4


class UniqueNames:
    """Gives each path (without extension) a form that no other has, also where case is ignored.

    Keeps a number for each path, not the path; of folders their spelling.
    """

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._next: dict[int, int] = {}
        self._folders: dict[str, str] = {}

    def claim(self, path: str) -> str:
        asked = hash(identity(path))
        name, taken = path, asked
        while taken in self._taken:
            number = self._next.get(asked, 2)
            self._next[asked] = number + 1
            name = f"{path} ({number})"
            taken = hash(identity(name))
        self._taken.add(taken)
        return name

    def is_spelled_alike(self, folder: str) -> bool:
        """Whether ``folder``, and each around it, is written as where it was met first: else it is
        part of that one where case is ignored."""
        names = folder.split("/")
        around = ["/".join(names[:depth]) for depth in range(1, len(names))]
        return all(self._folders.setdefault(identity(each), each) == each for each in around)

    def is_new(self, path: str) -> bool:
        """Claim ``path`` as it is, if it is free."""
        taken = hash(identity(path))
        if taken in self._taken:
            return False
        self._taken.add(taken)
        return True


def name_safe(text: str, *, otherwise: str) -> str:
    """``text`` as the name of a file or folder on any system."""
    short = unicodedata.normalize("NFC", _tamed(text[:MAX_PATH]))
    name = _cut(_UNSAFE.sub("_", short)).strip(" .")
    if not name.strip("_ ."):
        return otherwise
    return f"_{name}" if _RESERVED.fullmatch(name) else name


def _cut(name: str) -> str:
    return name.encode()[:MAX_NAME_BYTES].decode(errors="ignore")


def _tamed(text: str) -> str:
    """``text`` with its runs of combining marks cut."""
    if text.isascii():
        return text
    kept: list[str] = []
    run = 0
    for character in text:
        run = run + 1 if unicodedata.category(character)[0] == "M" else 0
        if run <= _MARKS:
            kept.append(character)
    return "".join(kept)


def folder_safe(folder: str) -> str:
    """A folder of Notewire as the beginning of a path in an archive: ``a/b/``, or nothing."""
    names = folder.strip("/").split("/") if folder != ROOT else []
    return "".join(f"{name_safe(name, otherwise='_')}/" for name in names)


def identity(path: str) -> str:
    """Equal for two names that some system takes for one: without case, in one Unicode form."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", _tamed(path)).lower())


def parts_checked(path: str) -> tuple[str, ...]:
    """The folders and the name that ``path`` from outside says, or why it is refused."""
    if "\0" in path:
        raise FileRefused("The name has a null character.")
    if len(path) > MAX_PATH:
        raise FileRefused(f"The name has more than {MAX_PATH} characters.")
    plain = path.replace("\\", "/")
    if plain.startswith("/"):
        raise FileRefused("The name is an absolute path.")
    if _DRIVE.match(plain):
        raise FileRefused("The name has a drive letter.")
    parts = tuple(part for part in plain.split("/") if part not in ("", "."))
    if ".." in parts:
        raise FileRefused("The name leaves the folder (..).")
    if not parts:
        raise FileRefused("There is no name.")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in plain):
        raise FileRefused("The name has control characters.")
    return parts
