"""The API answers in one format, so no `Accept` header can make a request fail."""

from __future__ import annotations

from collections.abc import Iterable

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.utils.mediatypes import media_type_matches


class OneFormat(BaseContentNegotiation):
    """The view's first renderer, whatever the client accepts; parsers by `Content-Type`."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        content_type = request.content_type or ""
        return next(
            (each for each in parsers if media_type_matches(each.media_type or "", content_type)),
            None,
        )

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""
