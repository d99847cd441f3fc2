"""The shapes of accounts on the wire."""

from __future__ import annotations

from rest_framework import serializers

from accounts.models import ApiToken, Scope, User
from accounts.services import expiry_checked, scopes_checked
from web.errors import ApiError
from web.fields import ShortListField
from web.serializers import ClosedSerializer, rule


class AccountSerializer(serializers.ModelSerializer[User]):
    class Meta:
        model = User
        fields = ("id", "username", "is_staff")


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """What is told of a token: never its secret."""

    scopes = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = ApiToken
        fields = ("id", "name", "hint", "scopes", "created", "last_used", "expires", "revoked")


class NewTokenSerializer(TokenSerializer):
    """A token as its maker sees it, once."""

    token = serializers.CharField(read_only=True, help_text="The secret, shown this once.")

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "token")  # type: ignore[assignment]


class TokenCreateSerializer(ClosedSerializer):
    name = serializers.CharField(max_length=100)
    scopes = ShortListField(
        child=serializers.CharField(max_length=10),
        required=False,
        max_length=len(Scope.values),
        validators=[rule(scopes_checked, ApiError)],
        help_text="read, write, chat, approve, admin; read, write and chat when not given.",
    )
    expires = serializers.DateTimeField(
        required=False, allow_null=True, validators=[rule(expiry_checked, ApiError)]
    )
