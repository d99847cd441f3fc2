"""The notes pages' paths."""

from django.urls import path

from notes.pages import views

app_name = "notes"
urlpatterns = [
    path("notes/", views.note_list_page, name="list"),
]
