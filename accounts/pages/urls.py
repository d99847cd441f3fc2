from django.urls import URLPattern, URLResolver, path

from accounts.pages import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", views.LogInView.as_view(), name="login"),
    path("logout/", views.LogOutView.as_view(), name="logout"),
    path("setup/<str:token>/", views.SetupView.as_view(), name="setup"),
]
