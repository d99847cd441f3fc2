"""The chat pages' paths."""

from django.urls import path

from chat.pages import views

app_name = "chat"
urlpatterns = [
    path("", views.home, name="home"),
    path("chat/<uuid:conversation_id>/", views.conversation_page, name="conversation"),
]
