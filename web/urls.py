from django.urls import URLPattern, URLResolver, path

from web import openapi

urlpatterns: list[URLPattern | URLResolver] = [
    path("schema/", openapi.SchemaView.as_view(), name="schema"),
    path("docs/", openapi.docs, name="api-docs"),
]
