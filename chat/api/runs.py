"""One run: its state, its stop, and another one like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.completions import ANSWERS, delivered
from chat.api.errors import translated
from chat.api.requests import owner_of
from chat.api.serializers import AgainSerializer, RunSerializer, StoppedRunSerializer
from chat.models import Run
from chat.runs.lifecycle import run_continue, run_retry, run_stop
from chat.transcript.selectors import run_get
from web.views import ApiView, takes


class RunView(ApiView):
    """One run."""

    @extend_schema(operation_id="runs_retrieve", summary="Show a run", responses=RunSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        with translated():
            run = run_get(owner=owner_of(request), run_id=run_id)
        return Response(RunSerializer(run).data)


class RunStopView(ApiView):
    """The wish that a run ends, from whoever may see it, wherever its stream is read."""

    scopes: ClassVar = {"POST": "chat"}

    @extend_schema(
        operation_id="runs_stop",
        summary="Stop a run",
        responses=StoppedRunSerializer,
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        with translated():
            before = run_get(owner=owner_of(request), run_id=run_id)
            run = run_stop(owner=owner_of(request), run_id=run_id)
        shown = StoppedRunSerializer(run, context={"was_over": not before.is_active})
        return Response(shown.data)


class RunAgainView(ApiView):
    """A new run on the same user message: going on from the answer, or beside it."""

    scopes: ClassVar = {"POST": "chat"}
    service: ClassVar[Callable[..., Run]]

    @takes(body=AgainSerializer)
    def post(self, request: Request, run_id: UUID) -> HttpResponse:
        sent = self.sent()
        with translated():
            run = type(self).service(owner=owner_of(request), run_id=run_id, model=sent["model"])
        return delivered(request, run, stream=sent["stream"])


@extend_schema_view(
    post=extend_schema(
        operation_id="runs_continue",
        summary="Go on from the answer of an ended run, with fresh iterations",
        responses=ANSWERS,
    )
)
class RunContinueView(RunAgainView):
    service = staticmethod(run_continue)


@extend_schema_view(
    post=extend_schema(
        operation_id="runs_retry",
        summary="Answer the same message once more, beside the old answer",
        responses=ANSWERS,
    )
)
class RunRetryView(RunAgainView):
    service = staticmethod(run_retry)
