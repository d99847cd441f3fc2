"""The notes pages: requests to services and selectors, their values to templates.

Every page works without JavaScript; with it, htmx asks for the list alone as a person types, and
the editor saves in place. What may be written is decided by the services.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.middleware import HtmxDetails

from notes import selectors, services
from notes.authors import Author
from notes.exceptions import NoteError, NoteInBin, NoteNotFound, NoteVersionConflict
from notes.models import Note
from notes.pages.forms import NoteForm, form_of, tags_written
from notes.pages.panes import filters_of, folder_tree, listing
from web.errors import wants_json
from web.markdown import MAX_RENDERED
from web.markdown import render as rendered
from web.pages import private_page


class PageRequest(HttpRequest):
    """A request as the middleware leaves it for a logged-in person."""

    user: AbstractBaseUser  # type: ignore[assignment]
    htmx: HtmxDetails


@private_page
@require_safe
def note_list_page(request: PageRequest) -> HttpResponse:
    """Notes by folder, tag or search. htmx gets the list alone."""
    if request.htmx and not request.htmx.history_restore_request:
        context = _listing_context(request)
        response = render(request, "notes/list.html", context)
        # The address to come back to: what was found by then, not that it was being typed. Beside
        # a note the address stays the note's.
        if (request.htmx.current_url_abs_path or "").partition("?")[0] == request.path:
            response["HX-Replace-Url"] = f"{request.path}{context['here']}"
        return response
    return notes_page(request)


@private_page
@require_safe
def note_page(request: PageRequest, note_id: UUID) -> HttpResponse:
    """One note, rendered; of one in the bin that it is there, for its owner."""
    try:
        note = selectors.note_get(owner=request.user, note_id=note_id)
    except NoteInBin:
        return _binned_page(request, note_id)
    except NoteNotFound:
        raise Http404 from None
    return notes_page(request, note=note, html=rendered(note.content))


@private_page
@require_http_methods(["GET", "HEAD", "POST"])
def note_new_page(request: PageRequest) -> HttpResponse:
    """A new note, in the folder that was looked at."""
    if request.method != "POST":
        filters = filters_of(request.GET)
        tags = tags_written([filters.tag])
        form = NoteForm(initial={"folder": filters.folder, "tags": tags})
        return notes_page(request, form=form)
    form = NoteForm(request.POST)
    if form.is_valid():
        try:
            note = services.note_create(
                owner=request.user, author=author_of(request), **form.fields_of_note()
            )
        except NoteError as error:
            form.take_error(error)
        else:
            return redirect("notes:note", note.id)
    return notes_page(request, form=form, status=400)


@private_page
@require_http_methods(["GET", "HEAD", "POST"])
def note_edit_page(request: PageRequest, note_id: UUID) -> HttpResponse:
    """Change a note that is still the version one began with; else both texts are shown."""
    note = note_of(request, note_id)
    if request.method != "POST":
        return notes_page(request, note=note, form=form_of(note))
    form = NoteForm(request.POST)
    if form.is_valid():
        try:
            saved = services.note_update(
                owner=request.user,
                author=author_of(request),
                note_id=note_id,
                expected_version=form.cleaned_data["version"] or 0,
                **form.fields_of_note(),
            )
        except NoteVersionConflict as error:
            return _conflict(request, note_id, error)
        except NoteError as error:
            form.take_error(error)
        else:
            if wants_json(request):
                return JsonResponse({"version": saved.version})
            return redirect("notes:note", note_id)
    if wants_json(request):
        message = " ".join(str(each) for errors in form.errors.values() for each in errors)
        return _json_error("invalid", message, 400)
    return notes_page(request, note=note, form=form, status=400)


@private_page
@require_POST
def note_delete_view(request: PageRequest, note_id: UUID) -> HttpResponse:
    """Into the bin, after the person confirmed it."""
    note = note_of(request, note_id)
    services.note_delete(owner=request.user, author=author_of(request), note_id=note_id)
    undo = render_to_string("notes/deleted.html", {"note": note}, request)
    messages.success(request, mark_safe(undo))  # noqa: S308
    return redirect("notes:list")


@private_page
@require_POST
def note_preview_view(request: PageRequest) -> HttpResponse:
    """The Markdown of the editor as it will be shown. Stores nothing."""
    content = request.POST.get("content", "")
    if len(content) > MAX_RENDERED:
        return HttpResponse("<p>This note is too long to be shown as you type.</p>")
    return HttpResponse(rendered(content))


def _binned_page(request: PageRequest, note_id: UUID) -> HttpResponse:
    note = selectors.bin_list(owner=request.user).filter(pk=note_id).first()
    if note is None:  # It was restored just now.
        return redirect("notes:note", note_id)
    return notes_page(
        request,
        template="notes/binned.html",
        binned_note=note,
        kept_days=services.KEPT_IN_BIN.days,
        in_bin=True,
    )


def _conflict(request: PageRequest, note_id: UUID, error: NoteVersionConflict) -> HttpResponse:
    if wants_json(request):
        return _json_error(error.code, error.message, 409)
    stored = note_of(request, note_id)
    mine = request.POST.copy()
    # Saving again means: over the version that is now shown beside it.
    mine["version"] = str(stored.version)
    return notes_page(request, note=stored, form=NoteForm(mine), stored=form_of(stored), status=409)


def _json_error(code: str, message: str, status: int) -> JsonResponse:
    error = {"code": code, "message": message, "fields": {}}
    return JsonResponse({"error": error}, status=status)


def author_of(request: PageRequest) -> Author:
    return Author.person(request.user, "page")


def note_of(request: PageRequest, note_id: UUID) -> Note:
    try:
        return selectors.note_get(owner=request.user, note_id=note_id)
    except NoteNotFound:
        raise Http404 from None


def _listing_context(request: PageRequest) -> dict[str, Any]:
    filters = filters_of(request.GET)
    found = listing(owner=request.user, filters=filters)
    return {
        "filters": filters,
        "listing": found,
        "here": filters.link(page=filters.page if filters.page > 1 else 0),
        "more": filters.link(page=filters.page + 1),
        "without_folder": filters.link(folder=""),
        "without_tag": filters.link(tag=""),
    }


def notes_page(
    request: PageRequest, *, template: str = "notes/page.html", status: int = 200, **context: Any
) -> HttpResponse:
    """Any of the notes pages: ``context`` is for its detail, beside folders and list."""
    counts = selectors.folder_counts(owner=request.user)
    context |= _listing_context(request)
    context |= {
        "folders": folder_tree(counts),
        "note_count": sum(row.count for row in counts),
        "tags": selectors.tag_counts(owner=request.user),
    }
    return render(request, template, context, status=status)
