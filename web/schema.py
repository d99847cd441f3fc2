"""What every operation of the OpenAPI document says: what it takes, errors, keys, scopes."""

from __future__ import annotations

from typing import Any, Literal

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from web.pagination import CursorPagination
from web.permissions import required_scope
from web.views import taken_by

Direction = Literal["request", "response"]

ERRORS = {
    "400": "The request is not valid: `fields` says what and where.",
    "401": "No session and no valid token.",
    "403": "The token lacks a scope, the CSRF token is missing, or this is not yours to do.",
    "404": "There is no such thing, or it is another person's.",
}


class ErrorObjectSerializer(serializers.Serializer[Any]):
    """What went wrong: `code` for programs, `message` for people."""

    code = serializers.CharField()
    message = serializers.CharField()
    fields = serializers.DictField(  # type: ignore[assignment]  # the envelope's own word
        child=serializers.ListField(child=serializers.CharField())
    )


class ErrorSerializer(serializers.Serializer[Any]):
    """The envelope of every error."""

    error = ErrorObjectSerializer()


class Schema(AutoSchema):
    """Adds what the method `takes`, the error responses, the headers and the scope."""

    def get_override_parameters(self) -> list[Any]:
        parameters = list(super().get_override_parameters())
        if query := taken_by(self.view, self.method).query:
            parameters.append(query)
        handler = getattr(self.view, self.method.lower(), None)
        if getattr(handler, "idempotent", False):
            parameters.append(
                OpenApiParameter(
                    "Idempotency-Key",
                    str,
                    OpenApiParameter.HEADER,
                    description="A repeated request with this key gets the first one's answer.",
                )
            )
        if getattr(handler, "conditional", False):
            parameters.append(
                OpenApiParameter(
                    "If-Match",
                    str,
                    OpenApiParameter.HEADER,
                    description="The version (`ETag`) that the change is based on.",
                )
            )
        return parameters

    def get_request_serializer(self) -> Any:
        taken = taken_by(self.view, self.method)
        return taken.body(partial=True) if taken.body and taken.partial else taken.body

    def _get_pagination_parameters(self) -> list[dict[str, Any]]:
        if not taken_by(self.view, self.method).paged:
            return []
        return CursorPagination().get_schema_operation_parameters(self.view)

    def get_description(self) -> str:  # type: ignore[override]  # as in drf-spectacular
        scope = required_scope(self.view, self.method)
        return f"{super().get_description()}\n\nScope of a token: `{scope}`.".strip()

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        for status, description in ERRORS.items():
            if status == "404" and "{" not in self.path:
                continue
            component = self.resolve_serializer(ErrorSerializer, "response")
            content = {"application/json": {"schema": component.ref}}
            bodies.setdefault(status, {"description": description, "content": content})
        return bodies
