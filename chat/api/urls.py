from django.urls import URLPattern, URLResolver, path

from chat.api.models import ModelsView

urlpatterns: list[URLPattern | URLResolver] = [
    path("models/", ModelsView.as_view(), name="models"),
]
