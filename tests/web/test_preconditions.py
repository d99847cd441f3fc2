"""`If-Match` in every form that clients really send."""

import pytest
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from web.errors import ApiError
from web.preconditions import etag, expected_version


def expected(header, current=3):
    headers = {} if header is None else {"If-Match": header}
    request = Request(APIRequestFactory().put("/", headers=headers))
    return expected_version(
        request,
        current=current,
        conflict=lambda version: ApiError(
            "note_version_conflict", "Changed meanwhile.", 412, extra={"version": version}
        ),
    )


def test_etag_is_the_quoted_version():
    assert etag(3) == '"3"'


@pytest.mark.parametrize(
    "header", ['"3"', "3", 'W/"3"', ' "3" ', '"1", "3"', '"1","3",', "1, 3", 'W/"1", 3']
)
def test_version_is_expected_when_it_is_named(header):
    assert expected(header) == 3


@pytest.mark.parametrize("header", [None, "*", " * "])
def test_any_version_will_do(header):
    assert expected(header) is None


@pytest.mark.parametrize("header", ['"2"', "2", "abc", '"33"', '"1", "2"', '""', '"*"', "03"])
def test_other_version_is_a_conflict_that_names_the_current_one(header):
    with pytest.raises(ApiError) as raised:
        expected(header)
    assert raised.value.status_code == 412
    assert raised.value.body()["error"]["version"] == 3


@pytest.mark.parametrize("header", ["", " ", ",", '"3', '3"', '"a" "b"', "x" * 2000, '*, "'])
def test_header_that_says_nothing_is_invalid(header):
    with pytest.raises(ApiError) as raised:
        expected(header)
    assert raised.value.status_code == 400
    assert list(raised.value.fields) == ["If-Match"]


def test_hostile_header_is_refused_at_once():
    with pytest.raises(ApiError):
        expected("a " * 499)
    with pytest.raises(ApiError):
        expected('"' + "a," * 499)
