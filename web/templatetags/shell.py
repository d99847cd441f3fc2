"""What the page shell needs from Python: the chosen theme and the import map of our modules."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from django import template
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

THEMES = ("light", "dark")


@register.simple_tag(takes_context=True)
def theme(context: template.Context) -> SafeString:
    """``data-theme`` from the cookie that the toggle sets; nothing follows the system."""
    request = context.get("request")
    chosen = request.COOKIES.get("theme") if request else None
    return format_html(' data-theme="{}"', chosen) if chosen in THEMES else mark_safe("")


@register.simple_tag(takes_context=True)
def import_map(context: template.Context) -> SafeString:
    """Bare names of our modules to their hashed addresses, as browsers cannot load a map by URL."""
    request = context.get("request")
    nonce = getattr(request, "csp_nonce", "")
    imports = json.dumps({"imports": {name: static(path) for name, path in _modules()}})
    return format_html(
        '<script type="importmap" nonce="{}">{}</script>',
        nonce,
        mark_safe(imports.replace("<", "\\u003c")),  # noqa: S308
    )


def _modules() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for finder in finders.get_finders():
        listed: Any = finder.list([])
        found += [
            (f"notewire/{PurePosixPath(path).stem}", path)
            for path, _ in listed
            if PurePosixPath(path).parent == PurePosixPath("js") and path.endswith(".js")
        ]
    return sorted(found)
