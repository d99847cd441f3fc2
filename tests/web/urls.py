"""Views that do one thing each, so that the kit can be tested without the product."""

from collections.abc import Callable
from typing import Any, ClassVar

import psycopg
from django.contrib.auth.models import Group
from django.core import exceptions as django_exceptions
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import include, path
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from web.errors import ApiError
from web.fields import ExactTextField, OneOfField, ShortListField
from web.idempotency import idempotent
from web.serializers import ClosedSerializer
from web.views import ApiView, takes

RAISED = {
    "api-error": ApiError("teapot", "Short.", 418, {"spout": ["Stout."]}, {"run": "1"}),
    "http404": Http404("No Secret matches the given query."),
    "denied": django_exceptions.PermissionDenied(),
    "drf-denied": exceptions.PermissionDenied("Not yours."),
    "throttled": exceptions.Throttled(wait=7.2),
    "parse": exceptions.ParseError("Odd."),
    "django-invalid": django_exceptions.ValidationError({"title": ["Too odd."]}),
    "django-whole": django_exceptions.ValidationError("Odd as a whole."),
    "too-big": django_exceptions.RequestDataTooBig(),
    "suspicious": django_exceptions.SuspiciousOperation(),
    "host": django_exceptions.DisallowedHost(),
    "files": django_exceptions.TooManyFilesSent(),
    "fields": django_exceptions.TooManyFieldsSent(),
    "crash": RuntimeError("the cause stays in the log"),
    "outage": psycopg.OperationalError("the connection is lost"),
}


class RaisingView(APIView):
    def get(self, request: Request, name: str) -> Response:
        raise RAISED[name]


class InnerSerializer(ClosedSerializer):
    count = serializers.IntegerField()


class EchoSerializer(ClosedSerializer):
    title = ExactTextField(max_length=10)
    plain = serializers.CharField(required=False)
    word = serializers.ChoiceField(["small"], required=False)
    tags = ShortListField(child=ExactTextField(max_length=5), max_length=10, required=False)
    inner = InnerSerializer(many=True, required=False)


class EchoQuerySerializer(ClosedSerializer):
    word = ExactTextField(required=False, max_length=10)
    pieces = serializers.ListField(child=ExactTextField(), required=False)
    flag = serializers.BooleanField(default=False)
    size = OneOfField(["small", "large"], default="small")


class EchoView(ApiView):
    scopes: ClassVar[dict[str, str]] = {"POST": "chat"}

    @takes(query=EchoQuerySerializer)
    def get(self, request: Request) -> Response:
        return Response({"user": request.user.pk, "asked": self.asked})

    @takes(body=EchoSerializer)
    def post(self, request: Request) -> Response:
        return Response(self.sent(), status=201)


class IdleView(ApiView):
    """Takes nothing."""

    def get(self, request: Request) -> Response:
        return Response({})

    def post(self, request: Request) -> Response:
        return Response({})


class OnceView(APIView):
    """Makes one group a call; `paused` lets a test hold a call in the middle of its effect."""

    paused: Callable[[], None] = staticmethod(lambda: None)

    @idempotent
    def post(self, request: Request) -> Response:
        asked: Any = request.data
        group = Group.objects.create(name=f"{asked['name']} {Group.objects.count()}")
        OnceView.paused()
        if asked.get("refuse") == "raised":
            raise ApiError("invalid", "Not now.", 400)
        if asked.get("refuse") == "returned":
            return Response({}, status=409)
        headers = {"ETag": '"1"', "Location": f"/groups/{group.pk}/", "X-Other": "not kept"}
        return Response({"id": group.pk, "name": group.name}, status=201, headers=headers)

    @idempotent
    def delete(self, request: Request) -> Response:
        Group.objects.create(name="deleted")
        return Response(status=204)


def crash(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("the cause stays in the log")


def cached(request: HttpRequest) -> HttpResponse:
    return HttpResponse(headers={"Cache-Control": "max-age=60"})


urlpatterns = [
    path("page/cached/", cached),
    path("api/raise/<str:name>/", RaisingView.as_view()),
    path("api/echo/", EchoView.as_view()),
    path("api/idle/", IdleView.as_view()),
    path("api/once/", OnceView.as_view()),
    path("api/twice/", OnceView.as_view()),
    path("page/crash/", crash),
    path("", include("config.urls")),
]

handler400 = "web.errors.handler400"
handler403 = "web.errors.handler403"
handler404 = "web.errors.handler404"
handler500 = "web.errors.handler500"
