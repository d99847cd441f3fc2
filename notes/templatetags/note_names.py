"""How the pages call what has no name of its own: notes without a title, tags with their sign."""

from __future__ import annotations

from django import template

from notes.rules import name_shown

register = template.Library()

register.filter("untitled", name_shown, is_safe=True)


@register.filter(is_safe=True)
def hashtag(tag: str) -> str:
    """A tag may have the sign in it."""
    return tag if tag.startswith("#") else f"#{tag}"
