"""Every operation of the API takes what the OpenAPI document says, and refuses everything else."""

import json
from urllib.parse import urlencode

import pytest
from django.urls import URLResolver, get_resolver
from rest_framework.serializers import ListField

from web.fields import ShortListField
from web.openapi import document
from web.serializers import NO_FIELD
from web.views import ApiView, taken_by

pytestmark = pytest.mark.django_db

SCHEMA = json.loads(document())
#: Slips of the pen, and what other products call it.
OTHERS = {
    "tags",
    "folders",
    "format",
    "page",
    "page_size",
    "ordering",
    "search",
    "Limit",
    "cursor ",
}
APART = {"schema", "api-docs"}
NOBODYS = "00000000-0000-4000-8000-000000000000"


def operations(*methods):
    for path, found in SCHEMA["paths"].items():
        for method in methods:
            if method in found:
                yield pytest.param(path, method, found[method], id=f"{method} {path}")


def parameters(operation):
    return {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}


def resolved(schema):
    while "$ref" in schema:
        schema = SCHEMA["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def fields(operation):
    """What the document says of its body's fields, and those of what is answered."""
    content = operation.get("requestBody", {}).get("content", {})
    sent = {name for each in content.values() for name in properties(each["schema"])}
    answers = [operation["responses"].get(status, {}) for status in ("200", "201")]
    shown = [each.get("content", {}).get("application/json", {}) for each in answers]
    return sent, {name for each in shown for name in properties(each.get("schema", {}))}


def properties(schema):
    return set(resolved(schema).get("properties", ()))


EVERY = list(operations("get", "post", "put", "patch", "delete"))
WITH_BODY = list(operations("post", "put", "patch"))
ALL_PARAMETERS = OTHERS.union(*(parameters(each.values[2]) for each in EVERY))
ALL_FIELDS = {"titel", "Content"}.union(
    *(set().union(*fields(each.values[2])) for each in WITH_BODY)
)


@pytest.fixture
def ask(client_of, user):
    client = client_of(user)

    def ask(method, path, query="", body=None, *, as_form=False):
        address = path.replace("{version}", "1")
        for name in ("{" + part.partition("}")[0] + "}" for part in path.split("{")[1:]):
            address = address.replace(name, NOBODYS)
        if as_form:
            return client.post(f"{address}?{query}", body)
        sent = "" if body is None else json.dumps(body)
        return client.generic(method, f"{address}?{query}", sent, "application/json")

    return ask


def refused(response, words):
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "invalid")
    return {name for name, said in error["fields"].items() if said[0].startswith(words)}


@pytest.mark.thorough
@pytest.mark.parametrize(("path", "method", "operation"), EVERY)
def test_operation_takes_exactly_the_parameters_of_the_document(ask, path, method, operation):
    response = ask(method, path, urlencode(dict.fromkeys(ALL_PARAMETERS, "\n")))
    assert refused(response, "There is no such parameter") == ALL_PARAMETERS - parameters(operation)


@pytest.mark.thorough
@pytest.mark.parametrize(("path", "method", "operation"), WITH_BODY)
def test_operation_takes_exactly_the_fields_of_the_document(ask, path, method, operation):
    sent, answered = fields(operation)
    as_form = "multipart/form-data" in operation.get("requestBody", {}).get("content", ())
    response = ask(method, path, body=dict.fromkeys(ALL_FIELDS, "?"), as_form=as_form)
    unknown = refused(response, NO_FIELD)
    assert not unknown & sent
    assert ALL_FIELDS - unknown - sent <= answered
    assert "titel" in unknown


def test_lists_and_no_others_have_pages():
    for each in EVERY:
        path, method, operation = each.values
        content = operation["responses"].get("200", {}).get("content", {})
        shown = content.get("application/json", {}).get("schema", {})
        is_paged = shown.get("$ref", "").rpartition("/")[2].startswith("Paginated")
        assert ({"cursor", "limit"} <= parameters(operation)) == is_paged, (method, path)


def views(patterns, prefix=""):
    for each in patterns:
        here = prefix + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from views(each.url_patterns, here)
        elif here.startswith("api/") and each.name not in APART:
            yield here, getattr(each.callback, "cls", object)


def test_every_view_of_the_api_says_what_it_takes():
    found = list(views(get_resolver().url_patterns))
    assert len(found) > 30
    for path, view in found:
        assert issubclass(view, ApiView), path


def test_every_list_that_is_taken_is_short():
    taken = [
        taken_by(view(), method)
        for _, view in views(get_resolver().url_patterns)
        for method in view.http_method_names
    ]
    shapes = {shape for each in taken for shape in (each.body, each.query) if shape}
    assert len(shapes) > 10
    for shape in shapes:
        for name, field in shape().fields.items():
            is_long = isinstance(field, ListField) and not isinstance(field, ShortListField)
            assert field.read_only or not is_long, (shape, name)
