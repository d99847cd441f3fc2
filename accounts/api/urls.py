from django.urls import URLPattern, URLResolver

from accounts.api import openapi as openapi

urlpatterns: list[URLPattern | URLResolver] = []
