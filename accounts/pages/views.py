"""Log in, log out, create the first account. Django's own views do all but the last."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import login, views
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from accounts import first_account
from accounts.models import User
from accounts.pages.forms import FirstAccountForm
from accounts.services import first_account_create


class LogInView(views.LoginView):
    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(no_account_yet=not User.objects.exists(), **kwargs)


class LogOutView(views.LogoutView):
    """By POST only; a session that is over already is no error."""


@method_decorator([never_cache, sensitive_post_parameters("password1", "password2")], "dispatch")
class SetupView(View):
    """The first account. A wrong, used or late link is a page that says so, and no more."""

    def dispatch(self, request: HttpRequest, *args: Any, token: str) -> Any:
        if not first_account.is_open(token):
            return _closed(request)
        return super().dispatch(request, *args)

    def get(self, request: HttpRequest) -> HttpResponse:
        return render(request, "accounts/setup.html", {"form": FirstAccountForm()})

    def post(self, request: HttpRequest) -> HttpResponse:
        form = FirstAccountForm(request.POST)
        if not form.is_valid():
            form.focus_on_error()
            return render(request, "accounts/setup.html", {"form": form})
        user = first_account_create(
            username=form.cleaned_data["username"], password=form.cleaned_data["password1"]
        )
        if user is None:
            return _closed(request)
        login(request, user)
        return redirect("/")


def _closed(request: HttpRequest) -> HttpResponse:
    said = "This link was used already, or it is not right. If you have an account, log in."
    return render(
        request, "web/error.html", {"title": "This link is closed", "message": said}, status=404
    )
