from django.urls import URLPattern, URLResolver, path

from chat.api.models import ModelsView
from chat.api.tools import ToolsView

urlpatterns: list[URLPattern | URLResolver] = [
    path("models/", ModelsView.as_view(), name="models"),
    path("tools/", ToolsView.as_view(), name="tools"),
]
