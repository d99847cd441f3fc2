"""`Idempotency-Key`: a request that is repeated after a lost answer takes effect once.

Owns the key's life: the effect and the stored answer are committed in one transaction, so that a
crash keeps both or neither. An advisory lock, held to the end of that transaction, tells a request
that is still in flight from one that never was. Errors are not stored: they had no effect.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from web.errors import ApiError, invalid
from web.models import IdempotencyKey

KEPT_FOR = timedelta(hours=24)
STORED_HEADERS = ("ETag", "Location")
PURGED_AT_ONCE = 100

Handler = Callable[..., HttpResponseBase]


def idempotent(handler: Handler) -> Handler:
    """Let a view method honour the header. It answers a DRF `Response` and runs in a transaction.

    Keys belong to one owner, method and path, for 24 hours.
    """

    @functools.wraps(handler)
    def wrapper(view: Any, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return handler(view, request, *args, **kwargs)
        _check_key(key)
        with transaction.atomic():
            return _answer_once(
                IdempotencyKey(
                    owner_id=int(request.user.pk or 0),
                    method=request.method or "",
                    path=request.path,
                    key=key,
                    body_hash=_body_hash(request),
                ),
                lambda: handler(view, request, *args, **kwargs),
            )

    wrapper.idempotent = True  # type: ignore[attr-defined]
    return wrapper


def _check_key(key: str) -> None:
    if not (1 <= len(key) <= 255 and key.isascii() and key.isprintable()):
        raise invalid("Give 1 to 255 printable ASCII characters.", field="Idempotency-Key")


def _body_hash(request: Request) -> str:
    """Of the parsed body and the query: a client may write the same JSON in another order."""
    asked = json.dumps([request.META.get("QUERY_STRING", ""), request.data], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()


def _answer_once(claim: IdempotencyKey, handle: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    if not _locked(claim):
        message = "The first request with this key is still in progress."
        raise ApiError("idempotency_in_progress", message, 409)
    stored = IdempotencyKey.objects.filter(
        owner_id=claim.owner_id, method=claim.method, path=claim.path, key=claim.key
    ).first()
    if stored is not None and stored.created > timezone.now() - KEPT_FOR:
        return _replayed(stored, claim)
    if stored is not None:
        stored.delete()
    response = handle()
    if response.status_code >= 400:
        transaction.set_rollback(True)
    elif isinstance(response, Response):
        _store(claim, response)
    return response


def _locked(claim: IdempotencyKey) -> bool:
    identity = "\0".join((str(claim.owner_id), claim.method, claim.path, claim.key))
    number = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        (locked,) = cursor.fetchone()
    return bool(locked)


def _store(claim: IdempotencyKey, response: Response) -> None:
    claim.status = response.status_code
    claim.headers = {name: response[name] for name in STORED_HEADERS if name in response}
    claim.body = "" if response.data is None else JSONRenderer().render(response.data).decode()
    claim.save()
    old = IdempotencyKey.objects.filter(created__lt=timezone.now() - KEPT_FOR)
    some = old.select_for_update(skip_locked=True).order_by("created")[:PURGED_AT_ONCE]
    IdempotencyKey.objects.filter(id__in=[each.id for each in some.only("id")]).delete()


def _replayed(stored: IdempotencyKey, claim: IdempotencyKey) -> HttpResponse:
    if stored.body_hash != claim.body_hash:
        message = "This key was used with another body."
        raise ApiError("idempotency_key_reused", message, 422)
    headers = {**stored.headers, "Idempotency-Replayed": "true"}
    return HttpResponse(
        stored.body, status=stored.status, headers=headers, content_type="application/json"
    )
