"""The settings of a person: how often they are asked, the language of their notes, their rules.

Owns wording and forms; what each choice means is ``runs.rules``' and ``notes.languages``'.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from chat.exceptions import ApprovalModeFixedError
from chat.models import ToolRule
from chat.pages.requests import PageRequest
from chat.runs import rules
from notes.exceptions import NoteInvalid
from notes.languages import language_choices, language_of, language_set
from tools.policy import Mode
from web.pages import private_page

MODES: dict[Mode, tuple[str, str]] = {
    "balanced": (
        "Balanced",
        "A change that can be undone happens at once, with its Undo beside it; you are asked "
        "before what leaves this server, what cannot be undone, and what follows text from "
        "outside.",
    ),
    "careful": ("Careful", "You are asked before every change, also one that can be undone."),
}


class ModeForm(forms.Form):
    mode = forms.ChoiceField(choices=[(name, title) for name, (title, _) in MODES.items()])


@dataclass(frozen=True, slots=True)
class ShownMode:
    name: str
    title: str
    text: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class ShownRule:
    """``place`` is the title of the one conversation that it is about, if any."""

    id: UUID
    tool: str
    allows: bool
    holds: bool
    conversation_id: UUID | None
    place: str
    created: datetime


@private_page
@require_safe
def settings_page(request: PageRequest) -> HttpResponse:
    mode = rules.mode_of(owner=request.user)
    context = {
        "modes": [ShownMode(name, *words, name == mode) for name, words in MODES.items()],
        "by_operator": bool(settings.NOTEWIRE_APPROVAL_MODE),
        "languages": language_choices(),
        "language": language_of(owner=request.user),
        "rules": [_rule(row) for row in rules.rule_list(owner=request.user)],
    }
    return render(request, "chat/settings.html", context)


@private_page
@require_POST
def mode_view(request: PageRequest) -> HttpResponse:
    form = ModeForm(request.POST)
    if form.is_valid():
        try:
            rules.mode_set(owner=request.user, mode=form.cleaned_data["mode"])
        except ApprovalModeFixedError as error:
            messages.error(request, str(error))
        else:
            messages.success(request, "Saved. It holds from the next answer on.")
    else:
        messages.error(request, "Choose one of the two.")
    return redirect("chat:settings")


@private_page
@require_POST
def language_view(request: PageRequest) -> HttpResponse:
    try:
        language = request.POST.get("language", "")
        language_set(owner=request.user, language=language)
    except NoteInvalid:
        messages.error(request, "This server does not know this language.")
    else:
        how = "in it" if language else "each in the language that is detected in it"
        messages.success(request, f"Saved. Your notes are being read anew, {how}.")
    return redirect("chat:settings")


@private_page
@require_POST
def rule_revoke_view(request: PageRequest, rule_id: UUID) -> HttpResponse:
    try:
        rules.rule_delete(owner=request.user, rule_id=rule_id)
    except ToolRule.DoesNotExist:
        raise Http404 from None
    messages.success(request, "Taken back.")
    return redirect("chat:settings")


def _rule(row: ToolRule) -> ShownRule:
    return ShownRule(
        id=row.id,
        tool=row.tool,
        allows=row.decision == "allow",
        holds=rules.rule_holds(row),
        conversation_id=row.conversation_id,
        place=row.conversation.title if row.conversation else "",
        created=row.created,
    )
