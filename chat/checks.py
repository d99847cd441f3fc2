"""System checks: what an operator got wrong about models stops the start."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from chat.exceptions import ChatError


@register("models")
def check_default_model(**kwargs: Any) -> list[CheckMessage]:
    """Whether somebody is there who may know the model; that they do is theirs to say."""
    if not settings.NOTEWIRE_DEFAULT_MODEL:
        return []
    # Not above: every command imports this module, and HTTP clients are slow to import.
    from chat.providers.catalogue import chosen

    try:
        chosen(settings.NOTEWIRE_DEFAULT_MODEL)
    except ChatError as error:
        return [Error(f"NOTEWIRE_DEFAULT_MODEL: {error}", id="chat.E001")]
    return []
