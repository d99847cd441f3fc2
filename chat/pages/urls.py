"""The chat pages' paths."""

from django.urls import path

from chat.pages import approvals, conversations, settings, undo, views
from chat.runs.lifecycle import run_continue, run_retry

app_name = "chat"
urlpatterns = [
    path("", views.home_page, name="home"),
    path("approvals/", approvals.inbox_page, name="approvals"),
    path("approvals/<uuid:approval_id>/", approvals.approval_view, name="approval"),
    path("approvals/<uuid:approval_id>/preview/", approvals.preview_view, name="approval-preview"),
    path("approvals/of/<uuid:message_id>/", approvals.together_view, name="approvals-together"),
    path("settings/", settings.settings_page, name="settings"),
    path("settings/asking/", settings.mode_view, name="settings-mode"),
    path("settings/language/", settings.language_view, name="settings-language"),
    path(
        "settings/rules/<uuid:rule_id>/revoke/",
        settings.rule_revoke_view,
        name="settings-rule-revoke",
    ),
    path("chat/list/", conversations.conversations_part, name="conversations"),
    path("chat/<uuid:conversation_id>/", views.conversation_page, name="conversation"),
    path("chat/<uuid:conversation_id>/rename/", conversations.rename_view, name="rename"),
    path("chat/<uuid:conversation_id>/archive/", conversations.archive_view, name="archive"),
    path("chat/<uuid:conversation_id>/delete/", conversations.delete_view, name="delete"),
    path("chat/runs/<uuid:run_id>/stream/", views.run_stream_view, name="stream"),
    path(
        "chat/runs/<uuid:run_id>/continue/",
        views.run_again_view,
        {"service": run_continue},
        name="continue",
    ),
    path(
        "chat/runs/<uuid:run_id>/retry/", views.run_again_view, {"service": run_retry}, name="retry"
    ),
    path(
        "chat/messages/<uuid:message_id>/calls/<int:position>/undo/",
        undo.call_undo_view,
        name="call-undo",
    ),
    path("chat/runs/<uuid:run_id>/undo/", undo.run_undo_view, name="run-undo"),
    path("chat/runs/<uuid:run_id>/stop/", views.run_stop_view, name="stop"),
]
