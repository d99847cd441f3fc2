"""The page on which notes come in and go out: upload, progress, report, and links to exports.

It works without JavaScript; with it, htmx asks for the progress alone while an import is under way.
"""

from __future__ import annotations

from http import HTTPStatus
from uuid import UUID

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from notes.exceptions import NoteError, NoteInvalid, NoteNotFound
from notes.models import FileOutcome, NoteTransfer
from notes.pages.views import PageRequest
from notes.transfer import selectors, services
from web.pages import private_page

#: What the edge asks with after it refused an archive for its size.
TOO_LARGE = "too_large"
MESSAGE_TOO_LARGE = (
    f"At most {services.MAX_UPLOAD_MIB} MiB: leave out attachments, or use notes_import on the"
    " server."
)
RECENT = 10
PROBLEMS = 200


class ImportForm(forms.Form):
    file = forms.FileField(
        label="ZIP archive", widget=forms.FileInput(attrs={"accept": ".zip,application/zip"})
    )
    folder = forms.CharField(
        required=False,
        label="Into the folder",
        widget=forms.TextInput(attrs={"placeholder": "/", "autocomplete": "off"}),
    )
    overwrite = forms.BooleanField(
        required=False, label="Replace notes that were changed here since, too"
    )
    trusted = forms.BooleanField(required=False, label="These are my own notes: trust them")


@private_page
@require_http_methods(["GET", "HEAD", "POST"])
def transfers_page(request: PageRequest) -> HttpResponse:
    """Import an archive, export the notes, and see what came of the last imports."""
    if request.method != "POST":
        is_too_large = TOO_LARGE in request.GET
        return _transfers(request, ImportForm(), status=413 if is_too_large else 200)
    form = ImportForm(request.POST, request.FILES)
    if form.is_valid():
        file = form.cleaned_data["file"]
        try:
            transfer = services.transfer_create(
                owner=request.user,
                archive=file.chunks(),
                name=file.name,
                folder=form.cleaned_data["folder"],
                overwrite=form.cleaned_data["overwrite"],
                trusted=form.cleaned_data["trusted"],
            )
        except NoteError as error:
            field = error.field if isinstance(error, NoteInvalid) else None
            form.add_error(field if field in form.fields else None, error.message)
        else:
            return redirect("notes:transfer", transfer.pk)
    return _transfers(request, form, status=400)


@private_page
@require_safe
def transfer_page(request: PageRequest, transfer_id: UUID) -> HttpResponse:
    """One import: its progress, then its report. htmx gets these alone."""
    try:
        transfer = selectors.transfer_get(owner=request.user, transfer_id=transfer_id)
    except NoteNotFound:
        raise Http404 from None
    template = "notes/progress.html" if request.htmx else "notes/transfer.html"
    return render(request, template, _report(transfer))


def _report(transfer: NoteTransfer) -> dict[str, object]:
    counts = [(outcome.label, getattr(transfer, f"files_{outcome}")) for outcome in FileOutcome]
    return {
        "transfer": transfer,
        "counts": [(label, count) for label, count in counts if count],
        "problems": selectors.transfer_problems(transfer=transfer, limit=PROBLEMS),
        "problem_limit": PROBLEMS,
    }


def _transfers(request: PageRequest, form: ImportForm, *, status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "recent": selectors.transfer_list(owner=request.user)[:RECENT],
        "max_mib": services.MAX_UPLOAD_MIB,
        "max_bytes": services.MAX_UPLOAD_MIB * 1024 * 1024,
        "too_large": MESSAGE_TOO_LARGE,
        "is_too_large": status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    }
    return render(request, "notes/transfers.html", context, status=status)
