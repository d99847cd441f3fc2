"""The JSON of conversations, messages and runs: shapes in and out, no logic.

What a request may hold is checked here; what it may do is the services' to say.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chat.models import Conversation, Message, Run, ToolCall
from chat.transcript.conversations import SYSTEM_PROMPT_BYTES
from web.fields import ExactTextField, OneOfField
from web.serializers import ClosedSerializer

ARCHIVED = {"false": False, "true": True, "all": None}


class RunErrorSerializer(serializers.ModelSerializer[Run]):
    """Why a run ended in an error; ``status`` is the provider's."""

    code = serializers.CharField(source="error_code")
    message = serializers.CharField(source="error_message")
    provider = serializers.CharField(source="error_provider")
    status = serializers.IntegerField(source="error_status", allow_null=True)
    retryable = serializers.BooleanField(source="error_retryable")

    class Meta:
        model = Run
        fields = ("code", "message", "provider", "status", "retryable")


class RunSerializer(serializers.ModelSerializer[Run]):
    """One request carried to its end; ``message`` is the user's message that it answers."""

    error = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields = (
            "id",
            "conversation",
            "message",
            "status",
            "stop_reason",
            "stop_requested",
            "error",
            "model",
            "provider",
            "iterations",
            "attempt",
            "created",
            "started",
            "finished",
        )
        read_only_fields = fields

    @extend_schema_field(RunErrorSerializer(allow_null=True))
    def get_error(self, run: Run) -> dict[str, Any] | None:
        return RunErrorSerializer(run).data if run.error_code else None


class StoppedRunSerializer(RunSerializer):
    """A run that was asked to stop; ``already_finished`` where there was nothing to stop."""

    already_finished = serializers.SerializerMethodField()

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "already_finished")  # type: ignore[assignment]
        read_only_fields = fields  # type: ignore[assignment]

    def get_already_finished(self, run: Run) -> bool:
        is_unstopped = run.finished is not None and run.stop_requested is None
        return is_unstopped or self.context.get("was_over", False)


class ConversationSerializer(ClosedSerializer, serializers.ModelSerializer[Conversation]):
    """A conversation; ``active_run`` is the run that is not finished, if any."""

    title = ExactTextField(max_length=500, required=False)
    model = ExactTextField(max_length=300, required=False)
    system_prompt = ExactTextField(required=False)
    active_run = serializers.SerializerMethodField()

    class Meta:
        model = Conversation
        fields = (
            "id",
            "title",
            "model",
            "system_prompt",
            "archived",
            "active_run",
            "created",
            "updated",
        )
        read_only_fields = ("id", "active_run", "created", "updated")

    def validate_system_prompt(self, value: str) -> str:
        if len(value.encode()) > SYSTEM_PROMPT_BYTES:
            raise serializers.ValidationError("This is longer than 64 KiB.", "max_length")
        return value

    @extend_schema_field(RunSerializer(allow_null=True))
    def get_active_run(self, conversation: Conversation) -> dict[str, Any] | None:
        active = getattr(conversation, "active_runs", [])
        return RunSerializer(active[0]).data if active else None


class ConversationFilterSerializer(ClosedSerializer):
    archived = OneOfField(
        list(ARCHIVED),
        default="false",
        help_text="Which to list: those in use, the archived ones, or all.",
    )


class TouchedSerializer(serializers.Serializer[Any]):
    """Something of the owner's that a call read or changed."""

    kind = serializers.CharField()
    id = serializers.CharField()
    title = serializers.CharField()


class ToolCallSerializer(serializers.ModelSerializer[ToolCall]):
    """A call with its result; ``arguments`` is the model's raw text."""

    summary = serializers.SerializerMethodField()
    duration_ms = serializers.SerializerMethodField()
    touched = serializers.SerializerMethodField()

    class Meta:
        model = ToolCall
        fields = (
            "id",
            "call_id",
            "name",
            "arguments",
            "status",
            "result",
            "is_error",
            "summary",
            "duration_ms",
            "touched",
            "started",
            "finished",
        )
        read_only_fields = fields

    def get_summary(self, call: ToolCall) -> str:
        return str(call.extra.get("summary", ""))

    def get_duration_ms(self, call: ToolCall) -> int:
        return int(call.extra.get("duration_ms", 0))

    @extend_schema_field(TouchedSerializer(many=True))
    def get_touched(self, call: ToolCall) -> list[dict[str, str]]:
        return list(call.extra.get("touched", []))


class UsageSerializer(serializers.ModelSerializer[Message]):
    """Tokens in four disjoint buckets."""

    fresh_input = serializers.IntegerField(source="fresh_input_tokens")
    cache_read = serializers.IntegerField(source="cache_read_tokens")
    cache_write = serializers.IntegerField(source="cache_write_tokens")
    output = serializers.IntegerField(source="output_tokens")

    class Meta:
        model = Message
        fields = ("fresh_input", "cache_read", "cache_write", "output")


class MessageSerializer(serializers.ModelSerializer[Message]):
    """One message; an assistant's holds its tool calls with their results."""

    usage = serializers.SerializerMethodField()
    tool_calls = ToolCallSerializer(many=True, read_only=True)

    class Meta:
        model = Message
        fields = (
            "id",
            "parent",
            "role",
            "content",
            "thinking",
            "model",
            "provider",
            "usage",
            "usage_is",
            "cost",
            "finish_reason",
            "stopped",
            "run",
            "iteration",
            "tool_calls",
            "created",
        )
        read_only_fields = fields

    @extend_schema_field(UsageSerializer(allow_null=True))
    def get_usage(self, message: Message) -> dict[str, Any] | None:
        return UsageSerializer(message).data if message.usage_is else None


class AgainSerializer(ClosedSerializer):
    """Who is to answer, and how the answer is to come."""

    model = ExactTextField(
        max_length=300,
        required=False,
        default="",
        help_text="`provider/model-id`; without it the conversation's.",
    )
    stream = serializers.BooleanField(
        required=False, default=True, help_text="Server-sent events, or one JSON body at the end."
    )


class CompletionSerializer(AgainSerializer):
    """What a person says, and how the answer is to come."""

    content = ExactTextField(help_text="The message, at most 200,000 bytes.")

    def validate_content(self, value: str) -> str:
        if not value.strip():
            raise serializers.ValidationError("This may not be blank.", "blank")
        return value
