"""What an API token may do: its scopes. Whose rows it then sees is decided in the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

if TYPE_CHECKING:
    from rest_framework.views import APIView

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class HasScope(BasePermission):
    """A token must hold the scope that the view's `scopes` names for the method.

    `scopes = {"GET": "read", "POST": "chat"}`; a method that is not listed needs `read` where it
    is safe and `write` otherwise. A session has no scopes and needs none.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.auth is None:
            return True
        scope = required_scope(view, request.method or "GET")
        self.message = f"This token does not have the scope {scope}."
        return scope in getattr(request.auth, "scopes", ())


def required_scope(view: APIView, method: str) -> str:
    """The scope that `method` needs; HEAD needs what GET needs."""
    method = "GET" if method == "HEAD" else method
    scopes: dict[str, str] = getattr(view, "scopes", {})
    return scopes.get(method, "read" if method in SAFE_METHODS else "write")
