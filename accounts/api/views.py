"""REST of accounts: who I am, and my API tokens."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.serializers import (
    AccountSerializer,
    NewTokenSerializer,
    TokenCreateSerializer,
    TokenSerializer,
)
from accounts.models import ApiToken, User
from accounts.selectors import token_list
from accounts.services import token_create, token_revoke
from web.views import ApiView, takes


def _owner(request: Request) -> User:
    return cast("User", request.user)


def _token(request: Request) -> ApiToken | None:
    return request.auth if isinstance(request.auth, ApiToken) else None


class AccountView(ApiView):
    """The account that makes the request."""

    @extend_schema(responses=AccountSerializer)
    def get(self, request: Request) -> Response:
        return Response(AccountSerializer(_owner(request)).data)


class TokensView(ApiView):
    """The API tokens of this account, the newest first."""

    @extend_schema(responses=TokenSerializer(many=True))
    @takes(paged=True)
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(token_list(owner=_owner(request)))
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(responses={201: NewTokenSerializer})
    @takes(body=TokenCreateSerializer)
    def post(self, request: Request) -> Response:
        """Make a token. A token cannot give what it does not have."""
        token, secret = token_create(owner=_owner(request), maker=_token(request), **self.sent())
        made = TokenSerializer(token).data | {"token": secret}
        return Response(made, status=201)


class TokenView(ApiView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, token_id: UUID) -> Response:
        """Revoke a token; one that is revoked already stays so."""
        token_revoke(owner=_owner(request), token_id=token_id, revoker=_token(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
