"""Texts as the index sees them, for what is done with them outside PostgreSQL: marking.

``Folded`` is a text without accents and what nobody sees, and in lower case, that knows where each
of its characters comes from. It is the Python side of ``notes_search_fold``, which decides what is
found.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from itertools import accumulate

#: Characters of scripts that put no space between words, as a class of Python and PostgreSQL.
CJK_CLASS = (
    r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003fffd"
)
#: Combining marks, and letters that decompose to nothing else.
MARKS_CLASS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0610-\u061a"
    r"\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    r"\u07a6-\u07b0\u07eb-\u07f3\u07fd\u0816-\u0819\u081b-\u0823\u0825-\u0827\u0829-\u082d"
    r"\u0859-\u085b\u0898-\u089f\u08ca-\u08e1\u08e3-\u0903\u093a-\u093c\u093e-\u094f"
    r"\u0951-\u0957\u0962-\u0963\u0981-\u0983\u09bc\u09be-\u09cd\u09d7\u09e2-\u09e3\u09fe-\u0a03"
    r"\u0a3c-\u0a51\u0a70-\u0a71\u0a75\u0a81-\u0a83\u0abc\u0abe-\u0acd\u0ae2-\u0ae3\u0afa-\u0b03"
    r"\u0b3c\u0b3e-\u0b57\u0b62-\u0b63\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04\u0c3c\u0c3e-\u0c56"
    r"\u0c62-\u0c63\u0c81-\u0c83\u0cbc\u0cbe-\u0cd6\u0ce2-\u0ce3\u0d00-\u0d03\u0d3b-\u0d3c"
    r"\u0d3e-\u0d4d\u0d57\u0d62-\u0d63\u0d81-\u0d83\u0dca-\u0ddf\u0df2-\u0df3\u0e31\u0e34-\u0e3a"
    r"\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f18-\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f3f"
    r"\u0f71-\u0f84\u0f86-\u0f87\u0f8d-\u0fbc\u0fc6\u102b-\u103e\u1056-\u1059\u105e-\u1060"
    r"\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u135d-\u135f"
    r"\u1712-\u1715\u1732-\u1734\u1752-\u1753\u1772-\u1773\u17b4-\u17d3\u17dd\u180b-\u180d\u180f"
    r"\u1885-\u1886\u18a9\u1920-\u193b\u1a17-\u1a1b\u1a55-\u1a7f\u1ab0-\u1b04\u1b34-\u1b44"
    r"\u1b6b-\u1b73\u1b80-\u1b82\u1ba1-\u1bad\u1be6-\u1bf3\u1c24-\u1c37\u1cd0-\u1cd2"
    r"\u1cd4-\u1ce8\u1ced\u1cf4\u1cf7-\u1cf9\u1dc0-\u1dff\u20d0-\u20f0\u2cef-\u2cf1\u2d7f"
    r"\u2de0-\u2dff\u302a-\u302f\u3099-\u309a\ua66f-\ua672\ua674-\ua67d\ua69e-\ua69f"
    r"\ua6f0-\ua6f1\ua802\ua806\ua80b\ua823-\ua827\ua82c\ua880-\ua881\ua8b4-\ua8c5\ua8e0-\ua8f1"
    r"\ua8ff\ua926-\ua92d\ua947-\ua953\ua980-\ua983\ua9b3-\ua9c0\ua9e5\uaa29-\uaa36\uaa43"
    r"\uaa4c-\uaa4d\uaa7b-\uaa7d\uaab0\uaab2-\uaab4\uaab7-\uaab8\uaabe-\uaabf\uaac1\uaaeb-\uaaef"
    r"\uaaf5-\uaaf6\uabe3-\uabea\uabec-\uabed\ufb1e\ufe00-\ufe0f\ufe20-\ufe2f\uff9e-\uff9f"
    r"\U000101fd\U000102e0\U00010376-\U0001037a\U00010a01-\U00010a0f\U00010a38-\U00010a3f"
    r"\U00010ae5-\U00010ae6\U00010d24-\U00010d27\U00010eab-\U00010eac\U00010f46-\U00010f50"
    r"\U00010f82-\U00010f85\U00011000-\U00011002\U00011038-\U00011046\U00011070"
    r"\U00011073-\U00011074\U0001107f-\U00011082\U000110b0-\U000110ba\U000110c2"
    r"\U00011100-\U00011102\U00011127-\U00011134\U00011145-\U00011146\U00011173"
    r"\U00011180-\U00011182\U000111b3-\U000111c0\U000111c9-\U000111cc\U000111ce-\U000111cf"
    r"\U0001122c-\U00011237\U0001123e\U000112df-\U000112ea\U00011300-\U00011303"
    r"\U0001133b-\U0001133c\U0001133e-\U0001134d\U00011357\U00011362-\U00011374"
    r"\U00011435-\U00011446\U0001145e\U000114b0-\U000114c3\U000115af-\U000115c0"
    r"\U000115dc-\U000115dd\U00011630-\U00011640\U000116ab-\U000116b7\U0001171d-\U0001172b"
    r"\U0001182c-\U0001183a\U00011930-\U0001193e\U00011940\U00011942-\U00011943"
    r"\U000119d1-\U000119e0\U000119e4\U00011a01-\U00011a0a\U00011a33-\U00011a39"
    r"\U00011a3b-\U00011a3e\U00011a47\U00011a51-\U00011a5b\U00011a8a-\U00011a99"
    r"\U00011c2f-\U00011c3f\U00011c92-\U00011cb6\U00011d31-\U00011d45\U00011d47"
    r"\U00011d8a-\U00011d97\U00011ef3-\U00011ef6\U00016af0-\U00016af4\U00016b30-\U00016b36"
    r"\U00016f4f\U00016f51-\U00016f92\U00016fe4-\U00016ff1\U0001bc9d-\U0001bc9e"
    r"\U0001cf00-\U0001cf46\U0001d165-\U0001d169\U0001d16d-\U0001d172\U0001d17b-\U0001d182"
    r"\U0001d185-\U0001d18b\U0001d1aa-\U0001d1ad\U0001d242-\U0001d244\U0001da00-\U0001da36"
    r"\U0001da3b-\U0001da6c\U0001da75\U0001da84\U0001da9b-\U0001daaf\U0001e000-\U0001e02a"
    r"\U0001e130-\U0001e136\U0001e2ae\U0001e2ec-\U0001e2ef\U0001e8d0-\U0001e8d6"
    r"\U0001e944-\U0001e94a\U000e0100-\U000e01ef\u0897\u0ece\U00010d69-\U00010d6d"
    r"\U00010efc-\U00010eff\U00011241\U000113b8-\U000113e2\U00011f34-\U00011f42"
    r"\U0001611e-\U0001612f\U0001e08f\U0001e4ec-\U0001e4ef\U0001e5ee-\U0001e5ef"
)
#: Characters that nobody sees, anywhere; joiners, which say something in other scripts than Latin.
INVISIBLE_CLASS = (
    r"\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069"
    r"\ufe00-\ufe0f\ufeff"
)
JOINER_CLASS = r"\u200c\u200d"
LATIN_CLASS = r"A-Za-z\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff"
#: Normalising takes time that is quadratic in a run of marks.
MAX_MARKS = 4

_CJK = re.compile(f"[{CJK_CLASS}]+")
_ASCII = bytes(range(128))
#: What belongs to the character before it.
_ADDED_CLASS = MARKS_CLASS + INVISIBLE_CLASS + JOINER_CLASS
_CLUSTER = re.compile(f"[^{_ADDED_CLASS}]?[{_ADDED_CLASS}]*", re.DOTALL)
_ADDED = re.compile(f"[{_ADDED_CLASS}]")
_INVISIBLE = re.compile(f"[{INVISIBLE_CLASS}]+")
_JOINERS = re.compile(f"([{LATIN_CLASS}])[{JOINER_CLASS}]+")
_LONG_RUN = re.compile(f"([{MARKS_CLASS}]{{{MAX_MARKS}}})[{MARKS_CLASS}]+")
#: Hebrew points and Arabic vowel signs, which hardly anybody types.
_POINTS = "\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u064b-\u0652\u0670"
_ACCENT = re.compile(f"(?<![иИ])\u0306|[\u0300-\u0305\u0307-\u036f{_POINTS}]")
_SINGLE = dict(zip("ẞøØłŁđĐÆŒıȺⱥȾⱦʻʼ", "SoOlLdDAOiAaTt''", strict=True))
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe"} | _SINGLE)


def cjk_runs(folded: str) -> list[str]:
    return [] if folded.isascii() else _CJK.findall(folded)


def fold(text: str) -> str:
    """Without accents, in one form for all writings of a character; the case is kept."""
    if text.isascii():
        return text
    bounded = _LONG_RUN.sub(r"\1", _visible(text)) if _has_added(text) else text
    decomposed = unicodedata.normalize("NFKD", bounded)
    return unicodedata.normalize("NFC", _ACCENT.sub("", decomposed)).translate(_LETTERS)


def _visible(text: str) -> str:
    return _JOINERS.sub(r"\1", _INVISIBLE.sub("", text))


class Folded:
    """``text`` folded, in its own case (``cased``) and in lower case (``lower``): both are as long
    as each other, and ``span`` leads from their positions to those of ``text``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._has_added = _has_added(text)
        if self._has_added:
            clusters = _CLUSTER.findall(text)
            # Of so many clusters few differ, and folding one costs a hundred times looking it up.
            self._known = {cluster: fold(cluster) for cluster in set(clusters)}
            small = {cluster: _lower(folded) for cluster, folded in self._known.items()}
            self.cased = "".join([self._known[cluster] for cluster in clusters])
            self.lower = "".join([small[cluster] for cluster in clusters])
        elif text.isascii():
            self.cased, self.lower = text, text.lower()
        else:
            self.cased = text.translate(_CASED)
            self.lower = self.cased.lower() if self.cased.isascii() else text.translate(_LOWER)

    @cached_property
    def _edges(self) -> tuple[list[int], list[int]]:
        """Where each cluster begins when it is folded, and where in the text."""
        if not self._has_added:
            folded = accumulate(len(_CASED[letter]) for letter in map(ord, self.text))
            return [0, *folded], list(range(len(self.text) + 1))
        clusters = _CLUSTER.findall(self.text)
        folded = accumulate(len(self._known[cluster]) for cluster in clusters)
        return [0, *folded], [0, *accumulate(map(len, clusters))]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The characters of ``text`` that this range comes from, none of them in part."""
        if not self._has_added and len(self.cased) == len(self.text):
            return start, end
        folded, own = self._edges
        first = bisect_right(folded, start) - 1
        last = bisect_right(folded, end - 1) - 1
        return own[first], own[last + 1]


def _has_added(text: str) -> bool:
    if text.isascii():
        return False
    beyond_ascii = text.encode(errors="surrogatepass").translate(None, _ASCII)
    return bool(_ADDED.search(beyond_ascii.decode(errors="surrogatepass")))


def _lower(cased: str) -> str:
    """In lower case, as long as before."""
    return "".join([low if len(low := each.lower()) == 1 else each for each in cased])


class _Letters(dict[int, str]):
    """A table for ``str.translate`` that learns letters as they come."""

    def __init__(self, changed: Callable[[str], str]) -> None:
        self._changed = changed

    def __missing__(self, letter: int) -> str:
        self[letter] = self._changed(chr(letter))
        return self[letter]


_CASED = _Letters(fold)
_LOWER = _Letters(lambda letter: _lower(fold(letter)))
