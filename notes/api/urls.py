"""Paths of the REST door to notes, under ``/api/``."""

from django.urls import path

from notes.api import views

urlpatterns = [
    path("notes/", views.NoteListView.as_view(), name="api-notes"),
    path("notes/search/", views.NoteSearchView.as_view(), name="api-note-search"),
    path("notes/folders/", views.NoteFoldersView.as_view(), name="api-note-folders"),
    path("notes/tags/", views.NoteTagsView.as_view(), name="api-note-tags"),
    path("notes/<uuid:note_id>/", views.NoteView.as_view(), name="api-note"),
]
