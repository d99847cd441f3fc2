"""The OpenAPI document is valid, complete and made without a warning; its page is strict."""

import json
import re

import pytest
from django.contrib.staticfiles import finders
from django.urls import get_resolver
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from web.openapi import document

METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture(scope="module")
def schema():
    return json.loads(document())


def operations(schema):
    for path, methods in schema["paths"].items():
        for method in METHODS:
            if method in methods:
                yield path, method, methods[method]


@pytest.mark.thorough
def test_document_is_valid_openapi_3_1_and_made_without_a_warning(schema, capsys):
    GENERATOR_STATS.reset()
    made = SchemaGenerator().get_schema(request=None, public=True)
    assert (dict(GENERATOR_STATS._warn_cache), dict(GENERATOR_STATS._error_cache)) == ({}, {})
    assert made["openapi"] == schema["openapi"] == "3.1.0"
    validate_schema(schema)


def test_every_operation_documents_its_errors_and_its_scope(schema):
    for path, method, operation in operations(schema):
        where = f"{method} {path}"
        for status in ("401", "403"):
            content = operation["responses"][status]["content"]["application/json"]
            assert content["schema"]["$ref"] == "#/components/schemas/Error", where
        assert "Scope of a token: `" in operation["description"], where
        assert {"token": []} in operation["security"], where
        if "{" in path:
            assert "404" in operation["responses"], where


def test_every_route_of_the_api_is_documented(schema):
    documented = {re.sub(r"\{[^}]*\}", "{}", path) for path in schema["paths"]}
    apart = {"/api/schema/", "/api/docs/"}

    def routes(patterns, prefix="/"):
        for each in patterns:
            here = prefix + str(each.pattern)
            if hasattr(each, "url_patterns"):
                yield from routes(each.url_patterns, here)
            else:
                yield re.sub(r"<[^>]*>", "{}", here)

    api = {each for each in routes(get_resolver().url_patterns) if each.startswith("/api/")}
    assert api - apart == documented


def test_error_envelope_is_described(schema):
    error = schema["components"]["schemas"]["ErrorObject"]["properties"]
    assert set(error) == {"code", "message", "fields"}


@pytest.mark.django_db
def test_document_and_page_are_open_to_everybody(client):
    assert client.get("/api/schema/").json()["info"]["title"] == "Notewire"
    assert client.get("/api/schema/?version=%0A&lang=x&format=yaml").status_code == 200
    assert client.get("/api/docs/").status_code == 200


@pytest.mark.django_db
def test_page_has_nothing_inline_and_nothing_from_elsewhere(client):
    page = client.get("/api/docs/")
    for attributes, body in re.findall(r"<script([^>]*)>(.*?)</script>", page.text, re.DOTALL):
        assert "src=" in attributes
        assert body == ""
    assert "<style" not in page.text
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert len(addresses) == 6
    for address in addresses:
        assert finders.find(address.removeprefix("/static/")), address
    policy = page["Content-Security-Policy"]
    assert re.search(r"script-src 'self'( 'nonce-[^']*')?;", policy + ";")
    assert "unsafe" not in policy
