"""Which view answers which path of chat."""

from django.urls import URLPattern, URLResolver, path

from chat.api import approvals, completions, conversations, events, runs, undo
from chat.api.models import ModelsView
from chat.api.tools import ToolsView

urlpatterns: list[URLPattern | URLResolver] = [
    path("approval-mode/", approvals.ApprovalModeView.as_view(), name="approval-mode"),
    path("approvals/", approvals.ApprovalListView.as_view(), name="approvals"),
    path("approvals/<uuid:approval_id>/", approvals.ApprovalView.as_view(), name="approval"),
    path(
        "approvals/<uuid:approval_id>/preview/",
        approvals.ApprovalPreviewView.as_view(),
        name="approval-preview",
    ),
    path("completions/", completions.CompletionsView.as_view(), name="completions"),
    path("conversations/", conversations.ConversationListView.as_view(), name="conversations"),
    path(
        "conversations/<uuid:conversation_id>/",
        conversations.ConversationView.as_view(),
        name="conversation",
    ),
    path(
        "conversations/<uuid:conversation_id>/completions/",
        completions.ConversationCompletionsView.as_view(),
        name="conversation-completions",
    ),
    path(
        "conversations/<uuid:conversation_id>/events/",
        events.ConversationEventsView.as_view(),
        name="conversation-events",
    ),
    path(
        "conversations/<uuid:conversation_id>/messages/",
        conversations.MessageListView.as_view(),
        name="conversation-messages",
    ),
    path("events/", events.OwnerEventsView.as_view(), name="events"),
    path("models/", ModelsView.as_view(), name="models"),
    path("runs/<uuid:run_id>/", runs.RunView.as_view(), name="run"),
    path("runs/<uuid:run_id>/continue/", runs.RunContinueView.as_view(), name="run-continue"),
    path("runs/<uuid:run_id>/retry/", runs.RunRetryView.as_view(), name="run-retry"),
    path("runs/<uuid:run_id>/events/", events.RunEventsView.as_view(), name="run-events"),
    path("runs/<uuid:run_id>/stop/", runs.RunStopView.as_view(), name="run-stop"),
    path("runs/<uuid:run_id>/undo/", undo.RunUndoView.as_view(), name="run-undo"),
    path(
        "tool-calls/<uuid:tool_call_id>/undo/",
        undo.ToolCallUndoView.as_view(),
        name="tool-call-undo",
    ),
    path("tool-rules/", approvals.ToolRuleListView.as_view(), name="tool-rules"),
    path("tool-rules/<uuid:rule_id>/", approvals.ToolRuleView.as_view(), name="tool-rule"),
    path("tools/", ToolsView.as_view(), name="tools"),
]
