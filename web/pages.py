"""What every private page has in common: a session, no copy kept anywhere, Trusted Types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from csp.decorators import csp_update
from django.contrib.auth.decorators import login_required
from django.http import HttpResponseBase
from django.views.decorators.cache import never_cache

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

#: Text becomes elements through our one policy and, for htmx, the default one; scripts never.
TRUSTED_TYPES = {
    "require-trusted-types-for": ["'script'"],
    "trusted-types": ["notewire", "default"],
}


def private_page(view: View) -> View:
    """Anonymous visitors log in first; browsers and proxies store nothing of the answer."""
    return cast("View", csp_update(TRUSTED_TYPES)(never_cache(login_required(view))))
