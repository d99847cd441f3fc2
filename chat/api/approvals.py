"""Decisions over REST: what waits for the owner's word, their word, their rules and their mode.

Needs the scope `approve` of a token, which none has by default. What a word may be and what comes
of it is `runs.deciding`'s, what rules mean `tools.policy`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, cast
from uuid import UUID

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import ApiToken, ApprovalMode, User
from chat.api.requests import owner_of
from chat.exceptions import (
    ApprovalClosedError,
    ApprovalInvalidError,
    ApprovalModeFixedError,
    ApprovalStaleError,
)
from chat.models import Approval, ApprovalScope, ToolRule
from chat.runs import approvals, rules
from chat.runs.deciding import Decision, approval_decide, approval_preview
from web.errors import ApiError, not_found
from web.fields import ExactTextField, OneOfField
from web.schema import ErrorSerializer
from web.serializers import ClosedSerializer
from web.views import ApiView, takes

REASON_CHARACTERS = 2_000
WORDS: dict[str, Decision] = {"approve": "approved", "deny": "denied"}
GOES_WITH = {"approve": ("arguments", "scope"), "deny": ("continue",)}


class PreviewSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    diff = serializers.CharField(allow_null=True)


class ApprovalSerializer(serializers.ModelSerializer[Approval]):
    """A call that a person decides on; `status` is `pending` while it is awaited."""

    conversation = serializers.UUIDField(source="run.conversation_id")
    title = serializers.CharField(source="run.conversation.title")
    tool_call_id = serializers.CharField(source="call.call_id")
    name = serializers.CharField(source="call.name")
    arguments = serializers.SerializerMethodField()
    preview = serializers.SerializerMethodField()
    effect = serializers.CharField(source="preview.effect")
    because = serializers.CharField(source="preview.because")
    scopes = serializers.ListField(child=serializers.CharField(), source="preview.scopes")
    status = serializers.SerializerMethodField()
    edited = serializers.SerializerMethodField()
    by = serializers.SerializerMethodField()
    expires_at = serializers.DateTimeField(source="expires")

    class Meta:
        model = Approval
        fields = (
            "id",
            "run",
            "conversation",
            "title",
            "tool_call_id",
            "name",
            "arguments",
            "preview",
            "effect",
            "because",
            "scopes",
            "status",
            "reason",
            "edited",
            "scope",
            "by",
            "requested",
            "expires_at",
            "decided",
            "digest",
        )
        read_only_fields = fields

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_arguments(self, approval: Approval) -> dict[str, Any]:
        return approvals.arguments_of(approval.call)

    @extend_schema_field(PreviewSerializer)
    def get_preview(self, approval: Approval) -> dict[str, Any]:
        return approvals.approval_folded(approval, approval.call).preview

    @extend_schema_field(serializers.ChoiceField(["pending", "approved", "denied", "expired"]))
    def get_status(self, approval: Approval) -> str:
        return approval.decision or "pending"

    @extend_schema_field(serializers.DictField(allow_null=True))
    def get_edited(self, approval: Approval) -> dict[str, Any] | None:
        return approvals.approval_folded(approval, approval.call).edited

    def get_by(self, approval: Approval) -> str:
        return approvals.approval_folded(approval, approval.call).by


class DecisionSerializer(ClosedSerializer):
    """A person's word on one call."""

    decision = OneOfField(list(WORDS))
    reason = ExactTextField(
        max_length=REASON_CHARACTERS, required=False, default="", help_text="Told to the model."
    )
    arguments = serializers.DictField(
        required=False,
        allow_null=True,
        default=None,
        help_text="With approve: what is to run in the place of the model's arguments.",
    )
    scope = OneOfField(
        ApprovalScope.choices,
        required=False,
        default=ApprovalScope.ONCE,
        help_text="With approve: how far it reaches; see the approval's `scopes`.",
    )

    digest = serializers.CharField(
        required=False,
        default=None,
        # That of an approval of what can no longer be done.
        allow_blank=True,
        max_length=64,
        help_text="With approve: the `digest` of what was looked at, of the approval or, with "
        "`arguments`, of their preview.",
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        go_on = serializers.BooleanField(
            required=False, default=False, help_text="With deny: let the model go on."
        )
        return {**super().get_fields(), "continue": go_on}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        other = "deny" if attrs["decision"] == "approve" else "approve"
        given = {
            "arguments": attrs["arguments"] is not None,
            "scope": attrs["scope"] != ApprovalScope.ONCE,
            "continue": attrs["continue"],
        }
        wrong = [name for name in GOES_WITH[other] if given[name]]
        if wrong:
            raise serializers.ValidationError(dict.fromkeys(wrong, [f"This goes with {other}."]))
        return attrs


class ArgumentsSerializer(ClosedSerializer):
    """What a person would let run in the place of the model's arguments."""

    arguments = serializers.DictField()


class ApprovalPreviewSerializer(serializers.Serializer[Any]):
    """What a call would do with other arguments; to approve them, name this `digest`."""

    arguments = serializers.DictField(help_text="As they would run.")
    preview = PreviewSerializer()
    effect = serializers.CharField()
    because = serializers.CharField()
    digest = serializers.CharField()


class ApprovalListView(ApiView):
    """The inbox."""

    @extend_schema(
        operation_id="approvals_list",
        summary="List what waits for your word in all conversations, the oldest first",
        responses=ApprovalSerializer(many=True),
    )
    @takes(paged=True)
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(approvals.approvals_pending(owner=owner_of(request)))
        return self.get_paginated_response(ApprovalSerializer(page, many=True).data)


class ApprovalView(ApiView):
    """One approval."""

    scopes: ClassVar = {"POST": "approve"}

    @extend_schema(
        operation_id="approvals_retrieve",
        summary="Show an approval, pending or decided",
        responses=ApprovalSerializer,
    )
    def get(self, request: Request, approval_id: UUID) -> Response:
        with told(owner_of(request)):
            found = approvals.approval_get(owner=owner_of(request), approval_id=approval_id)
        return Response(ApprovalSerializer(found).data)

    @extend_schema(
        operation_id="approvals_decide",
        summary="Approve or deny a call",
        responses={
            200: ApprovalSerializer,
            409: OpenApiResponse(
                ErrorSerializer,
                description="`approval_closed`: it was decided otherwise, or is no longer awaited. "
                "`approval_stale`: what it would change is another by now. `approval` is the "
                "approval as it is.",
            ),
        },
    )
    @takes(body=DecisionSerializer)
    def post(self, request: Request, approval_id: UUID) -> Response:
        word = self.sent()
        with told(owner_of(request)):
            decided = approval_decide(
                owner=owner_of(request),
                approval_id=approval_id,
                decision=WORDS[word["decision"]],
                reason=word["reason"],
                arguments=word["arguments"],
                scope=word["scope"],
                go_on=word["continue"],
                seen=word["digest"],
                via=cast("ApiToken | None", request.auth),
            )
        return Response(ApprovalSerializer(decided).data)


class ApprovalPreviewView(ApiView):
    """Other arguments, looked at before they are approved."""

    scopes: ClassVar = {"POST": "read"}

    @extend_schema(
        operation_id="approvals_preview",
        summary="Show what a call would do with other arguments; decides nothing",
        responses={
            200: ApprovalPreviewSerializer,
            409: OpenApiResponse(
                ErrorSerializer,
                description="`approval_closed`: it was decided, or is no longer awaited. "
                "`approval` is the approval as it is.",
            ),
        },
    )
    @takes(body=ArgumentsSerializer)
    def post(self, request: Request, approval_id: UUID) -> Response:
        owner = owner_of(request)
        with told(owner):
            found = approval_preview(
                owner=owner, approval_id=approval_id, arguments=self.sent()["arguments"]
            )
        shown = {
            "arguments": found.arguments,
            "preview": approvals.preview_shown(found),
            "effect": found.effect,
            "because": found.because,
            "digest": found.digest,
        }
        return Response(ApprovalPreviewSerializer(shown).data)


@contextmanager
def told(owner: User) -> Iterator[None]:
    """What decisions raise, as the envelope tells it, with the approval as it is."""
    try:
        yield
    except (Approval.DoesNotExist, ToolRule.DoesNotExist):
        raise not_found() from None
    except ApprovalInvalidError as error:
        raise ApiError(error.code, str(error), 400, error.fields) from None
    except (ApprovalClosedError, ApprovalStaleError) as error:
        found = approvals.approval_get(owner=owner, approval_id=error.approval_id)
        shown = {"approval": ApprovalSerializer(found).data}
        raise ApiError(error.code, str(error), 409, extra=shown) from None


class ToolRuleSerializer(serializers.ModelSerializer[ToolRule]):
    """What you said about a tool; `holds`: the tool is still what it was then."""

    holds = serializers.SerializerMethodField()

    class Meta:
        model = ToolRule
        fields = ("id", "tool", "decision", "conversation", "holds", "created")
        read_only_fields = fields

    def get_holds(self, rule: ToolRule) -> bool:
        return rules.rule_holds(rule)


class ToolRuleListView(ApiView):
    @extend_schema(
        operation_id="tool_rules_list",
        summary="List your rules about tools, the newest first",
        responses=ToolRuleSerializer(many=True),
    )
    @takes(paged=True)
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(rules.rule_list(owner=owner_of(request)))
        return self.get_paginated_response(ToolRuleSerializer(page, many=True).data)


class ToolRuleView(ApiView):
    scopes: ClassVar = {"DELETE": "approve"}

    @extend_schema(
        operation_id="tool_rules_destroy",
        summary="Take back a rule: the tool is asked for again",
        responses={204: OpenApiResponse(description="It is gone.")},
    )
    def delete(self, request: Request, rule_id: UUID) -> Response:
        with told(owner_of(request)):
            rules.rule_delete(owner=owner_of(request), rule_id=rule_id)
        return Response(status=204)


class ApprovalModeSerializer(ClosedSerializer):
    """How often you are asked."""

    mode = OneOfField(
        ApprovalMode.choices, help_text="`balanced`, or `careful`: every change is asked for."
    )
    by_operator = serializers.BooleanField(
        read_only=True, help_text="The operator said so for everybody."
    )


class ApprovalModeView(ApiView):
    scopes: ClassVar = {"PUT": "approve"}

    @extend_schema(
        operation_id="approval_mode_retrieve",
        summary="Show how often you are asked",
        responses=ApprovalModeSerializer,
    )
    def get(self, request: Request) -> Response:
        return self._shown(owner_of(request))

    @extend_schema(
        operation_id="approval_mode_update",
        summary="Choose how often you are asked",
        responses={
            200: ApprovalModeSerializer,
            409: OpenApiResponse(
                ErrorSerializer,
                description="`approval_mode_fixed`: the operator chose another for everybody.",
            ),
        },
    )
    @takes(body=ApprovalModeSerializer)
    def put(self, request: Request) -> Response:
        mode = self.sent()["mode"]
        try:
            rules.mode_set(owner=owner_of(request), mode=mode)
        except ApprovalModeFixedError as error:
            raise ApiError(error.code, str(error), 409) from None
        return self._shown(owner_of(request))

    def _shown(self, owner: User) -> Response:
        forced = bool(settings.NOTEWIRE_APPROVAL_MODE)
        return Response({"mode": rules.mode_of(owner=owner), "by_operator": forced})
