"""The chat pages' paths."""

from django.urls import path

from chat.pages import views

app_name = "chat"
urlpatterns = [
    path("", views.home_page, name="home"),
    path("chat/<uuid:conversation_id>/", views.conversation_page, name="conversation"),
    path("chat/runs/<uuid:run_id>/stream/", views.run_stream_view, name="stream"),
    path("chat/runs/<uuid:run_id>/stop/", views.run_stop_view, name="stop"),
]
