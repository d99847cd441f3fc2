"""Who changes a note, and through which door: a value that every door hands to the services.

Owns the value alone. That the author may change the note is decided by the owner in the query;
how a change is kept is ``recording``'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser

AuthorKind = Literal["person", "assistant"]
Via = Literal["page", "rest", "admin", "tool", "import"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """``user`` is the person, or on whose behalf an assistant acts.

    A token is told by its id and its name, as both outlive it. ``call_id`` is the id that a model
    gave its call, unique in the conversation. ``tainted``: it was shown text from outside before.
    ``vouches``: they stand for what they import.
    """

    kind: AuthorKind
    user: AbstractBaseUser
    via: Via
    token_id: UUID | None = None
    token_name: str = ""
    conversation_id: UUID | None = None
    run_id: UUID | None = None
    call_id: str = ""
    tainted: bool = False
    vouches: bool = False

    @property
    def brings_outside(self) -> bool:
        """Whether what they write may be somebody else's text."""
        return self.tainted or (self.via == "import" and not self.vouches)

    @classmethod
    def person(cls, user: AbstractBaseUser, via: Via, *, token: Any = None) -> Author:
        """A person at a page, or their program with a ``token`` of theirs (its row, or None)."""
        if token is None:
            return cls(kind="person", user=user, via=via)
        return cls(kind="person", user=user, via=via, token_id=token.pk, token_name=token.name)
