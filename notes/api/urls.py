"""Paths of the REST door to notes, under ``/api/``."""

from django.urls import path

from notes.api import history, views

urlpatterns = [
    path("notes/", views.NoteListView.as_view(), name="api-notes"),
    path("notes/search/", views.NoteSearchView.as_view(), name="api-note-search"),
    path("notes/folders/", views.NoteFoldersView.as_view(), name="api-note-folders"),
    path("notes/tags/", views.NoteTagsView.as_view(), name="api-note-tags"),
    path("notes/bin/", history.BinView.as_view(), name="api-note-bin"),
    path("notes/<uuid:note_id>/", views.NoteView.as_view(), name="api-note"),
    path(
        "notes/<uuid:note_id>/restore/", history.NoteRestoreView.as_view(), name="api-note-restore"
    ),
    path(
        "notes/<uuid:note_id>/revisions/",
        history.RevisionListView.as_view(),
        name="api-note-revisions",
    ),
    path(
        "notes/<uuid:note_id>/revisions/<int:version>/",
        history.RevisionView.as_view(),
        name="api-note-revision",
    ),
    path(
        "notes/<uuid:note_id>/revisions/<int:version>/restore/",
        history.RevisionRestoreView.as_view(),
        name="api-note-revision-restore",
    ),
]
