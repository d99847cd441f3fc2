"""What every private page has in common: a session, and no copy kept anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.contrib.auth.decorators import login_required
from django.http import HttpResponseBase
from django.views.decorators.cache import never_cache

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def private_page(view: View) -> View:
    """Anonymous visitors log in first; browsers and proxies store nothing of the answer."""
    return never_cache(login_required(view))
