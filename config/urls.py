"""Which app answers which path; each app keeps its own list."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("web.urls")),
    path("api/", include("accounts.api.urls")),
    path("api/", include("notes.api.urls")),
    path("api/", include("chat.api.urls")),
    path("", include("accounts.pages.urls")),
    path("", include("notes.pages.urls")),
    path("", include("chat.pages.urls")),
]

handler400 = "web.errors.handler400"
handler403 = "web.errors.handler403"
handler404 = "web.errors.handler404"
handler500 = "web.errors.handler500"
