"""REST of accounts: who I am, and my API tokens."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.serializers import (
    AccountSerializer,
    NewTokenSerializer,
    TokenCreateSerializer,
    TokenSerializer,
)
from accounts.models import ApiToken, User
from accounts.selectors import token_list
from accounts.services import token_create, token_revoke


def _owner(request: Request) -> User:
    return cast("User", request.user)


def _token(request: Request) -> ApiToken | None:
    return request.auth if isinstance(request.auth, ApiToken) else None


class AccountView(APIView):
    """The account that makes the request."""

    @extend_schema(responses=AccountSerializer)
    def get(self, request: Request) -> Response:
        return Response(AccountSerializer(_owner(request)).data)


class TokensView(generics.ListAPIView[ApiToken]):
    """The API tokens of this account, the newest first."""

    serializer_class = TokenSerializer
    queryset = ApiToken.objects.none()

    def list(self, request: Request, *args: object, **kwargs: object) -> Response:
        page = self.paginate_queryset(token_list(owner=_owner(request)))
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(request=TokenCreateSerializer, responses={201: NewTokenSerializer})
    def post(self, request: Request) -> Response:
        """Make a token. A token cannot give what it does not have."""
        asked = TokenCreateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        token, secret = token_create(
            owner=_owner(request), maker=_token(request), **asked.validated_data
        )
        made = TokenSerializer(token).data | {"token": secret}
        return Response(made, status=201)


class TokenView(APIView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, token_id: UUID) -> Response:
        """Revoke a token; one that is revoked already stays so."""
        token_revoke(owner=_owner(request), token_id=token_id, revoker=_token(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
