"""Ask and be answered: start a run and hand over its stream, or its end as one JSON body.

Owns the completion endpoints. Starting is ``runs.lifecycle``'s; what is written is ``wire``'s.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from chat.api.approvals import ApprovalSerializer
from chat.api.errors import run_failed, translated
from chat.api.following import drain, follow
from chat.api.requests import owner_of
from chat.api.serializers import CompletionSerializer
from chat.api.streaming import events_response
from chat.models import Run, RunStatus
from chat.runs.approvals import approvals_pending
from chat.runs.lifecycle import run_start
from chat.wire import sse
from chat.wire.openai import CompletionStream, completion_body
from tools.threads import unit_of_work
from web.schema import ErrorSerializer
from web.streams import DeferredResponse, State
from web.views import ApiView, takes

ANSWERS = {
    (200, "text/event-stream"): OpenApiResponse(
        OpenApiTypes.STR,
        description="With `stream`: OpenAI chunks as unnamed events, all else as named events. "
        "Without: one `chat.completion` at the end.",
    ),
    (200, "application/x-ndjson"): OpenApiResponse(
        OpenApiTypes.STR, description="With `stream`, where `Accept` prefers it: a line an event."
    ),
    (200, "application/json"): OpenApiResponse(OpenApiTypes.OBJECT),
    202: OpenApiResponse(
        OpenApiTypes.OBJECT,
        description="Without `stream`: calls wait for approval (`run`, `status`, `approvals`), or "
        "the run goes on while this server stops or has lost its database (`run`, `status`).",
    ),
    409: OpenApiResponse(ErrorSerializer, description="Another run is active: `run` is its id."),
    413: OpenApiResponse(ErrorSerializer, description="The message is too large."),
}


class CompletionsView(ApiView):
    """A message that begins a new conversation."""

    scopes: ClassVar = {"POST": "chat"}

    @extend_schema(
        operation_id="completions_create",
        summary="Begin a conversation and answer its first message",
        responses=ANSWERS,
    )
    @takes(body=CompletionSerializer)
    def post(self, request: Request) -> HttpResponse:
        return answered(self, conversation_id=None)


class ConversationCompletionsView(ApiView):
    """A message in a conversation."""

    scopes: ClassVar = {"POST": "chat"}

    @extend_schema(
        operation_id="conversations_completions_create",
        summary="Answer a message in a conversation",
        responses=ANSWERS,
    )
    @takes(body=CompletionSerializer)
    def post(self, request: Request, conversation_id: UUID) -> HttpResponse:
        return answered(self, conversation_id=conversation_id)


def answered(view: ApiView, *, conversation_id: UUID | None) -> HttpResponse:
    """Start the run; the answer is delivered after Django let go of the request."""
    sent = view.sent()
    with translated():
        run = run_start(
            owner=owner_of(view.request),
            conversation_id=conversation_id,
            content=sent["content"],
            model=sent["model"],
        )
    return delivered(view.request, run, stream=sent["stream"])


def delivered(request: Request, run: Run, *, stream: bool) -> HttpResponse:
    """The answer of a run that was just started, as a stream or as one body."""
    label = f"run {run.id}"
    response: HttpResponse
    if stream:
        chunks = CompletionStream(run_id=run.id, created=run.created, model=run.model)
        response = events_response(
            request, lambda runtime: follow(runtime, run.id), encode=chunks.encode, label=label
        )
    else:
        begun = sse.one_line({"run": str(run.id), "status": RunStatus.RUNNING.value})
        response = DeferredResponse(lambda state: _body(state, run), label=label, begun=begun)
    response["X-Run-Id"] = str(run.id)
    response["X-Conversation-Id"] = str(run.conversation_id)
    return response


def _awaiting_body(run: Run) -> bytes:
    pending = approvals_pending(owner=run.owner, run_id=run.id)
    shown = ApprovalSerializer(pending, many=True).data
    body = {"run": str(run.id), "status": RunStatus.AWAITING_APPROVAL.value, "approvals": shown}
    return JSONRenderer().render(body)


async def _body(state: State, run: Run) -> tuple[int, bytes, dict[str, str]]:
    async with aclosing(follow(state["runtime"], run.id)) as batches:
        folded = await drain(batches)
    if folded.stop_reason is None and folded.is_awaiting:
        return 202, await unit_of_work(_awaiting_body, run), {}
    if folded.error is not None:
        failed = run_failed(folded.error, run)
        return failed.status_code, sse.one_line(failed.body()), {}
    body = completion_body(
        folded, run_id=run.id, conversation_id=run.conversation_id, created=run.created
    )
    return 200, sse.one_line(body), {}
