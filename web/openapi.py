"""The OpenAPI document and the page that shows it, both for everybody: they hold no data.

The page's script is a file of ours and Swagger UI comes from an installed package, so that the
content security policy of all pages holds here too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView


class SchemaView(APIView):
    authentication_classes: tuple[Any, ...] = ()
    permission_classes: tuple[Any, ...] = ()

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(document(), content_type="application/json")


@cache
def document() -> bytes:
    """The document, made once in a process: it depends on the code alone."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return bytes(JSONRenderer().render(schema))


def docs(request: HttpRequest) -> HttpResponse:
    return render(request, "web/api_docs.html")
