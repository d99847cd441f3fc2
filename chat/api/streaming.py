"""What all streams of events have in common at the door: format, resume point, who may read.

Owns the choice between server-sent events and NDJSON, which is the ``Accept`` header's. What is
followed is ``following``'s, how it is written ``wire``'s.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request

from accounts.selectors import Credential
from chat.api.following import Batches
from chat.api.requests import owner_of
from chat.events import LoggedEvent
from chat.runs.runtime import Runtime
from chat.wire import ndjson, sse
from web.errors import ApiError
from web.fields import ExactTextField
from web.serializers import ClosedSerializer
from web.streams import EventStreamResponse, NdjsonStreamResponse, State
from web.views import ApiView

NDJSON = "application/x-ndjson"

STREAMED: dict[Any, Any] = {
    (200, "text/event-stream"): OpenApiResponse(
        OpenApiTypes.STR, description="Named events, each with its id."
    ),
    (200, NDJSON): OpenApiResponse(
        OpenApiTypes.STR, description="Where `Accept` prefers it: a JSON object a line."
    ),
}


T = TypeVar("T")


def events_response(
    request: Request,
    follow: Callable[[Runtime], Batches],
    *,
    label: str,
    encode: Callable[[tuple[LoggedEvent, ...]], bytes] | None = None,
    full_ids: bool = False,
) -> EventStreamResponse:
    """Events of runs; ``encode`` makes server-sent events where they are not simply named.

    ``full_ids`` are those of a conversation: they name the run.
    """
    return stream_response(
        request,
        follow,
        frames=encode or partial(sse.encode, full_ids=full_ids),
        lines=partial(ndjson.encode, full_ids=full_ids),
        label=label,
    )


def stream_response(
    request: Request,
    follow: Callable[[Runtime], AsyncGenerator[tuple[T, ...] | None, None]],
    *,
    frames: Callable[[tuple[T, ...]], bytes],
    lines: Callable[[tuple[T, ...]], bytes],
    label: str,
) -> EventStreamResponse:
    """Follow in the format that the client prefers."""
    let_in = credential_of(request)
    if ndjson_asked(request):
        source = _source(follow, lines, ndjson.KEEP_ALIVE, let_in)
        return NdjsonStreamResponse(source, label=label)
    return EventStreamResponse(_source(follow, frames, sse.KEEP_ALIVE, let_in), label=label)


def _source(
    follow: Callable[[Runtime], AsyncGenerator[tuple[T, ...] | None, None]],
    encode: Callable[[tuple[T, ...]], bytes],
    keep_alive: bytes,
    let_in: Credential,
) -> Callable[[State], AsyncIterator[bytes]]:
    async def source(state: State) -> AsyncIterator[bytes]:
        runtime = state["runtime"]
        async with runtime.guard.serving(let_in), aclosing(follow(runtime)) as batches:
            async for batch in batches:
                yield keep_alive if batch is None else encode(batch)

    return source


def credential_of(request: Request) -> Credential:
    """By what the one who asks was let in."""
    user_id = owner_of(request).pk
    if request.auth is not None:
        return Credential(user_id, token_id=request.auth.pk)
    return session_credential(request._request.session, user_id=user_id)


def session_credential(session: SessionBase, *, user_id: int) -> Credential:
    """Of a person at a browser."""
    hash_ = session.get(HASH_SESSION_KEY, "")
    return Credential(user_id, session_key=session.session_key or "", password_hash=hash_)


def ndjson_asked(request: Request) -> bool:
    """Whether ``Accept`` prefers NDJSON. Events are sent where it says nothing of either."""
    return request._request.get_preferred_type(["text/event-stream", NDJSON]) == NDJSON


class ResumeSerializer(ClosedSerializer):
    after = ExactTextField(
        required=False, help_text="Go on after this event id, as `Last-Event-ID` does."
    )


def resume_point(view: ApiView) -> str:
    """The id to go on after: a browser's header goes before the address it was opened with."""
    return view.request.headers.get("Last-Event-ID", "") or view.asked.get("after", "")


def last_event_id(form: str) -> OpenApiParameter:
    return OpenApiParameter(
        "Last-Event-ID",
        location=OpenApiParameter.HEADER,
        description=f"The id of the last event seen, `{form}`.",
    )


def other_sites_refuse(request: Request) -> None:
    """A browser sends the cookie along with another site's ``EventSource`` too."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    if request.auth is None and site not in {"same-origin", "none"}:
        raise ApiError("permission_denied", "Streams are for pages of this site.", 403)
