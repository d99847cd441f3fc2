"""How many decisions wait, for the badge that every page's rail shows."""

from __future__ import annotations

from django import template

from accounts.models import User
from chat.runs.approvals import approvals_pending

register = template.Library()


@register.simple_tag(takes_context=True)
def pending_approvals(context: template.Context) -> int:
    user = context.get("user")
    return approvals_pending(owner=user).count() if isinstance(user, User) else 0
