"""Notes made up for measuring: words as frequent as a language's, each note about something.

The commonest words are English's own; the others are made of syllables. A note draws most words by
Zipf's law and the rest from the few of its topic, so that rarer words come together as they do in
what people write. The same seed gives the same notes.
"""

from __future__ import annotations

import random
from itertools import accumulate
from typing import NamedTuple

COMMON = (
    "the of and to a in is that for it was on with as be by at this from or are an not which"
    " have but they you his had we can been has their were more will one all would there if when"
    " who what so no out up into about time some like new only over also first work use made make"
    " may then people other than its after two how our well way even want because any these give"
)
HEADS = "b d f g k l m n p r s t v st tr ch"
ENDINGS = ("", "", "", "n", "r", "s", "l", "t", "ing", "ed", "er", "tion")
WORDS = 60_000
TOPICS = 4_000
TOPIC_WORDS = 25
OF_TOPIC = 0.15


class MadeNote(NamedTuple):
    title: str
    content: str


class Corpus:
    """An endless source of notes."""

    def __init__(self, seed: int = 1) -> None:
        self.random = random.Random(seed)
        syllables = [f"{head}{vowel}" for head in HEADS.split() for vowel in "aeiou"]
        words = dict.fromkeys(COMMON.split())
        while len(words) < WORDS:
            made = "".join(self.random.choices(syllables, k=self.random.randint(2, 4)))
            words[made + self.random.choice(ENDINGS)] = None
        self.words = list(words)
        self._weights = list(accumulate(1 / (rank + 2.7) ** 1.07 for rank in range(WORDS)))
        self._topics = [
            [self.words[int(self.random.triangular(200, WORDS, 2000))] for _ in range(TOPIC_WORDS)]
            for _ in range(TOPICS)
        ]

    def note(self) -> MadeNote:
        length = max(3, min(3000, int(self.random.lognormvariate(4.8, 0.8))))
        topic = self.random.choice(self._topics)
        said = self.random.choices(self.words, cum_weights=self._weights, k=length)
        for _ in range(int(length * OF_TOPIC) + 1):
            # Of what a note is about, it says some words often.
            word = topic[min(TOPIC_WORDS - 1, int(self.random.expovariate(0.25)))]
            said[self.random.randrange(length)] = word
        title = [*self.random.sample(topic, 2), *self.random.choices(said, k=2)]
        self.random.shuffle(title)
        return MadeNote(" ".join(title).capitalize(), " ".join(said))

    def text(self, length: int) -> str:
        """So many characters of notes, one after the other."""
        text = ""
        while len(text) < length:
            text += f"{self.note().content}\n"
        return text[:length]
