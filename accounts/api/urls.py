from django.urls import URLPattern, URLResolver, path

from accounts.api import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("account/", views.AccountView.as_view(), name="account"),
    path("tokens/", views.TokensView.as_view(), name="tokens"),
    path("tokens/<uuid:token_id>/", views.TokenView.as_view(), name="token"),
]
