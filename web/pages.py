"""What every private page has in common: a session, no copy kept anywhere, Trusted Types, and where
the person's feed stood before anything on the page was read: its script goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from csp.decorators import csp_update
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.cache import never_cache

from web import feed

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

#: Text becomes elements through our one policy and, for htmx, the default one; scripts never.
TRUSTED_TYPES = {
    "require-trusted-types-for": ["'script'"],
    "trusted-types": ["notewire", "default"],
}


class _FollowedRequest(HttpRequest):
    feed_position: int


def private_page(view: View) -> View:
    """Anonymous visitors log in first; browsers and proxies store nothing of the answer."""
    followed = login_required(_followed(view))
    return cast("View", csp_update(TRUSTED_TYPES)(never_cache(followed)))


def _followed(view: View) -> View:
    @wraps(view)
    def followed(request: _FollowedRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # Neither parts of pages nor streams have a script of their own.
        if request.accepts("text/html") and "HX-Request" not in request.headers:
            request.feed_position = feed.position_last(owner_id=cast("int", request.user.pk))
        return view(request, *args, **kwargs)

    return cast("View", followed)
