"""``GET /api/models/``: what can be talked to now, asked from the vendors while nothing waits.

The vendors' lists come over the network, so the answer is deferred: no thread is held for it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from web.streams import DeferredResponse, State
from web.views import ApiView


class CapabilitiesSerializer(serializers.Serializer[Any]):
    """None where the provider does not say."""

    tools = serializers.BooleanField(allow_null=True)
    context_length = serializers.IntegerField(allow_null=True)


class ModelSerializer(serializers.Serializer[Any]):
    """A model; ``id`` is what a request names it by."""

    id = serializers.CharField()
    provider = serializers.CharField()
    provider_label = serializers.CharField()
    model = serializers.CharField()
    capabilities = CapabilitiesSerializer()


class ModelListSerializer(serializers.Serializer[Any]):
    """All at once: there is never a next page."""

    count = serializers.IntegerField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = ModelSerializer(many=True)
    default = serializers.CharField(
        allow_null=True, help_text="Answers where no model is named; null where it is not known."
    )
    problems = serializers.DictField(
        child=serializers.CharField(), help_text="By provider: why its models are missing."
    )


class ModelsView(ApiView):
    """The models of all configured providers."""

    scopes: ClassVar = {"GET": "read"}

    @extend_schema(responses=ModelListSerializer)
    def get(self, request: Request) -> DeferredResponse:
        return DeferredResponse(model_list, label="models")


async def model_list(state: State) -> tuple[int, bytes, dict[str, str]]:
    listing = await state["runtime"].catalogue.models()
    results = [
        {
            "id": model.reference,
            "provider": model.provider,
            "provider_label": model.label,
            "model": model.model,
            "capabilities": {"tools": model.tools, "context_length": model.context_length},
        }
        for model in listing.models
    ]
    page = {"count": len(results), "next": None, "previous": None, "results": results}
    more = {"default": listing.default, "problems": listing.problems}
    return 200, msgspec.json.encode(page | more), {}
