"""REST of tools: which there are, and whether a call would run, be asked for, or is off."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.requests import owner_of
from chat.runs.rules import policy_of
from tools.policy import DECISIONS, EFFECTS
from tools.registry import registry
from web.views import ApiView


class ToolSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    effect = serializers.ChoiceField(
        EFFECTS,
        help_text="read; write, which undo can take back; external, which leaves the machine.",
    )
    parameters = serializers.DictField(help_text="A JSON Schema of the arguments, an object.")
    policy = serializers.ChoiceField(DECISIONS)
    reason = serializers.CharField(help_text="Whose word the policy is.")


class ToolListSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = ToolSerializer(many=True)


class ToolsView(ApiView):
    scopes: ClassVar[dict[str, str]] = {"GET": "read"}

    @extend_schema(operation_id="tools_list", responses=ToolListSerializer)
    def get(self, request: Request) -> Response:
        """Every tool, with what is decided about its calls and why; always one page."""
        policy = policy_of(owner=owner_of(request))
        results = []
        for tool in registry.tools():
            verdict = policy.decide(tool.name, tool.effect)
            results.append(
                {
                    "name": tool.name,
                    "description": tool.spec.description,
                    "effect": tool.effect,
                    "parameters": tool.spec.parameters,
                    "policy": verdict.decision,
                    "reason": verdict.reason,
                }
            )
        page = {"count": len(results), "next": None, "previous": None, "results": results}
        return Response(page)
