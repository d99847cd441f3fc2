"""Paths of the REST door to notes, under ``/api/``."""

from django.urls import path

from notes.api import history, transfers, views

urlpatterns = [
    path("notes/", views.NoteListView.as_view(), name="api-notes"),
    path("notes/search/", views.NoteSearchView.as_view(), name="api-note-search"),
    path("notes/folders/", views.NoteFoldersView.as_view(), name="api-note-folders"),
    path("notes/tags/", views.NoteTagsView.as_view(), name="api-note-tags"),
    path("notes/language/", views.NoteLanguageView.as_view(), name="api-note-language"),
    path("notes/bin/", history.BinView.as_view(), name="api-note-bin"),
    path("notes/export/", transfers.NoteExportView.as_view(), name="api-note-export"),
    path("notes/import/", transfers.NoteImportView.as_view(), name="api-note-import"),
    path("notes/transfers/", transfers.TransferListView.as_view(), name="api-note-transfers"),
    path(
        "notes/transfers/<uuid:transfer_id>/",
        transfers.TransferView.as_view(),
        name="api-note-transfer",
    ),
    path(
        "notes/transfers/<uuid:transfer_id>/files/",
        transfers.TransferFilesView.as_view(),
        name="api-note-transfer-files",
    ),
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
