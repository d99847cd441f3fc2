"""The notes pages' paths."""

from django.urls import path

from notes.pages import history, transfers, views

app_name = "notes"
urlpatterns = [
    path("notes/", views.note_list_page, name="list"),
    path("notes/new/", views.note_new_page, name="new"),
    path("notes/preview/", views.note_preview_view, name="preview"),
    path("notes/bin/", history.bin_page, name="bin"),
    path("notes/transfers/", transfers.transfers_page, name="transfers"),
    path("notes/transfers/<uuid:transfer_id>/", transfers.transfer_page, name="transfer"),
    path("notes/<uuid:note_id>/", views.note_page, name="note"),
    path("notes/<uuid:note_id>/edit/", views.note_edit_page, name="edit"),
    path("notes/<uuid:note_id>/vouch/", views.note_vouch_view, name="vouch"),
    path("notes/<uuid:note_id>/delete/", views.note_delete_view, name="delete"),
    path("notes/<uuid:note_id>/restore/", history.note_restore_view, name="restore"),
    path("notes/<uuid:note_id>/history/", history.history_page, name="history"),
    path("notes/<uuid:note_id>/history/<int:version>/", history.history_page, name="version"),
    path(
        "notes/<uuid:note_id>/history/<int:version>/restore/",
        history.revision_restore_view,
        name="version-restore",
    ),
]
