"""The notes pages: requests to services and selectors, their values to templates.

Every page works without JavaScript; with it, htmx asks for the list alone as a person types, and
the editor saves in place. What may be written is decided by the services.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.middleware import HtmxDetails

from notes import selectors, services
from notes.authors import Author
from notes.exceptions import (
    NoteError,
    NoteInBin,
    NoteNotFound,
    NoteSaveTimeout,
    NoteVersionConflict,
    RevisionNotFound,
)
from notes.models import Note
from notes.pages.forms import NoteForm, form_of, tags_written
from notes.pages.marking import html_marked
from notes.pages.panes import Filters, filters_of, folder_tree, listing, number_in
from notes.parts import Part, markdown_of, part_at, part_of
from notes.search import Marks, first_found_in, found_in
from web.errors import wants_json
from web.markdown import is_too_much
from web.markdown import render as rendered
from web.pages import private_page

View = TypeVar("View", bound=Callable[..., HttpResponse])


class PageRequest(HttpRequest):
    """A request as the middleware leaves it for a logged-in person."""

    user: AbstractBaseUser  # type: ignore[assignment]
    htmx: HtmxDetails


@private_page
@require_safe
def note_list_page(request: PageRequest) -> HttpResponse:
    """Notes by folder, tag or search. htmx gets the list alone."""
    if request.htmx and not request.htmx.history_restore_request:
        context = _listing_context(request) | _part_links(filters_of(request.GET), None)
        response = render(request, "notes/list.html", context)
        # The address to come back to: what was found by then, not that it was being typed. Beside
        # a note the address stays the note's.
        if (request.htmx.current_url_abs_path or "").partition("?")[0] == request.path:
            response["HX-Replace-Url"] = f"{request.path}{context['here']}"
        return response
    return notes_page(request)


def of_a_note(view: View) -> View:
    """For pages of one note: of one in the bin its owner is told that it is there, and of a change
    that took too long that nothing was changed."""

    @wraps(view)
    def shown(request: PageRequest, note_id: UUID, **options: Any) -> HttpResponse:
        try:
            return view(request, note_id, **options)
        except NoteInBin as error:
            if wants_json(request):
                return _json_error(error.code, error.message, 404)
            return _binned_page(request, note_id)
        except NoteSaveTimeout as error:
            messages.error(request, error.message)
            return redirect("notes:note", note_id)
        except (NoteNotFound, RevisionNotFound):
            raise Http404 from None

    return cast("View", shown)


@private_page
@require_safe
@of_a_note
def note_page(request: PageRequest, note_id: UUID) -> HttpResponse:
    """One note, rendered."""
    note = selectors.note_get(owner=request.user, note_id=note_id)
    query = filters_of(request.GET).query
    find = partial(_found_in, request.user, query)
    part = _part(request, note)
    if query and part.count > 1 and "part" not in request.GET:
        part = _part_found(request.user, query, note) or part
    html = html_marked(rendered(markdown_of(note.content, part)), find)
    return notes_page(request, note=note, part=part, html=html)


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
@of_a_note
def note_edit_page(request: PageRequest, note_id: UUID) -> HttpResponse:
    """Change a note that is still the version one began with; else both texts are shown."""
    note = selectors.note_get(owner=request.user, note_id=note_id)
    part = _part(request, note)
    if request.method != "POST":
        form = form_of(note, part=part if part.count > 1 else None)
        return notes_page(request, note=note, part=part, form=form)
    form = NoteForm(request.POST, note=note)
    if form.is_valid():
        try:
            saved = services.note_update(
                owner=request.user,
                author=author_of(request),
                note_id=note_id,
                expected_version=form.cleaned_data["version"] or 0,
                over="over" in request.POST,
                **form.changes_of(note),
            )
        except NoteVersionConflict as error:
            return _conflict(request, note_id, error)
        except NoteNotFound:
            raise
        except NoteError as error:
            form.take_error(error)
        else:
            if wants_json(request):
                end = form.end_in(saved, before=note)
                return JsonResponse({"version": saved.version, "end": end})
            shown = _part_link(saved, form.cleaned_data["start"]) if form.is_part else ""
            return redirect(f"{reverse('notes:note', args=[note_id])}{shown}")
    if wants_json(request):
        message = " ".join(str(each) for errors in form.errors.values() for each in errors)
        return _json_error("invalid", message, 400)
    return notes_page(request, note=note, part=part, form=form, status=400)


@private_page
@require_POST
@of_a_note
def note_vouch_view(request: PageRequest, note_id: UUID) -> HttpResponse:
    """The person stands for what the note holds, in the version that they were shown."""
    try:
        services.note_update(
            owner=request.user,
            author=author_of(request),
            note_id=note_id,
            from_outside=False,
            expected_version=number_in(request.POST, "version"),
        )
    except NoteVersionConflict:
        messages.error(request, "This note has changed since. Read it again first.")
    else:
        messages.success(request, "You vouch for this note now.")
    return redirect("notes:note", note_id)


@private_page
@require_POST
@of_a_note
def note_delete_view(request: PageRequest, note_id: UUID) -> HttpResponse:
    """Into the bin, after the person confirmed it."""
    note = selectors.note_get(owner=request.user, note_id=note_id)
    services.note_delete(owner=request.user, author=author_of(request), note_id=note_id)
    undo = render_to_string("notes/deleted.html", {"note": note}, request)
    messages.success(request, mark_safe(undo))  # noqa: S308
    return redirect("notes:list")


@private_page
@require_POST
def note_preview_view(request: PageRequest) -> HttpResponse:
    """The Markdown of the editor as it will be shown. Stores nothing."""
    content = request.POST.get("content", "")
    if is_too_much(content):
        return HttpResponse("<p>This note is too long to be shown as you type.</p>")
    return HttpResponse(rendered(content))


def _found_in(owner: AbstractBaseUser, query: str, text: str) -> Marks:
    """What to mark of a search that one came from; nothing where that takes too long."""
    try:
        return found_in(owner=owner, query=query, text=text) if query else ()
    except NoteError:
        return ()


def _part_found(owner: AbstractBaseUser, query: str, note: Note) -> Part | None:
    """The part with the first of what a search found, unless that takes too long."""
    try:
        place = first_found_in(owner=owner, query=query, note_id=note.pk, text=note.content)
    except NoteError:
        return None
    return None if place is None else part_at(note.content, place)


def _binned_page(request: PageRequest, note_id: UUID) -> HttpResponse:
    """What the person wrote meanwhile is shown beside it; else nothing they sent is lost."""
    note = selectors.bin_list(owner=request.user).filter(pk=note_id).first()
    unsaved = request.POST.get("content", "")
    if note is None or (request.method == "POST" and not unsaved):
        return redirect("notes:note", note_id)
    return notes_page(
        request,
        template="notes/binned.html",
        status=409 if unsaved else 200,
        binned_note=note,
        unsaved=unsaved,
        kept_days=services.KEPT_IN_BIN.days,
        in_bin=True,
    )


def _conflict(request: PageRequest, note_id: UUID, error: NoteVersionConflict) -> HttpResponse:
    if wants_json(request):
        return _json_error(error.code, error.message, 409)
    stored = selectors.note_get(owner=request.user, note_id=note_id)
    part = _part(request, stored)
    sent = request.POST.copy()
    mine = NoteForm(sent, note=stored)
    shown: dict[str, Any] = {"note": stored, "part": part, "form": mine}
    if mine.is_part or part.count > 1:
        # Where a part is in another version nobody can say: nothing is saved over it.
        return notes_page(request, **shown, is_moved=True, status=409)
    # Saving again means: over the version that is now shown beside it.
    sent["version"] = str(stored.version)
    return notes_page(request, **shown, stored=form_of(stored), status=409)


def _json_error(code: str, message: str, status: int) -> JsonResponse:
    error = {"code": code, "message": message, "fields": {}}
    return JsonResponse({"error": error}, status=status)


def author_of(request: PageRequest) -> Author:
    return Author.person(request.user, "page")


def _part(request: PageRequest, note: Note) -> Part:
    """The part that the URL asks for of a note that is too long for one page; else all of it."""
    return part_of(note.content, number=number_in(request.GET, "part"))


def _part_link(note: Note, place: int | None) -> str:
    return f"?part={part_at(note.content, place or 0).number}"


def _part_links(filters: Filters, part: Part | None) -> dict[str, str]:
    """Where one is in the list and in the note, and where its other parts are."""
    page = filters.page if filters.page > 1 else 0
    number = part.number if part and part.count > 1 else 0
    return {
        "here": filters.link(page=page),
        "here_in_note": filters.link(page=page, part=number),
        "earlier_part": filters.link(page=page, part=number - 1),
        "later_part": filters.link(page=page, part=number + 1),
    }


def _listing_context(request: PageRequest) -> dict[str, Any]:
    filters = filters_of(request.GET)
    found = listing(owner=request.user, filters=filters)
    return {
        "filters": filters,
        "listing": found,
        "first": filters.link(),
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
    context |= _part_links(context["filters"], context.get("part"))
    context |= {
        "folders": folder_tree(counts),
        "note_count": sum(row.count for row in counts),
        "tags": selectors.tag_counts(owner=request.user),
    }
    return render(request, template, context, status=status)
