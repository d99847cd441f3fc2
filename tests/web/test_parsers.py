"""JSON bodies: what is refused, how fast, and with which words."""

import json

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from tests.effort import growth
from web.errors import ApiError
from web.parsers import MAX_DEPTH, MAX_VALUES, parsed

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"{'a': 1}", "not valid JSON"),
        (b'{"a": NaN}', "not valid JSON"),
        (b'{"a": Infinity}', "not valid JSON"),
        (b'{"a": 1e999}', "not valid JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (b'{"a": "\xed\xa0\xbd"}', "not valid JSON"),
        (b'{"a": "\\ud83d"}', "ud83d is half of a surrogate pair"),
        (b'{"a": "\\udc00\\ud83d"}', "udc00 is half of a surrogate pair"),
        (b'{"a": "\\ud83d\\ude00\\\\\\uDC00"}', "uDC00 is half of a surrogate pair"),
        (b'{"a": "\\\\ud83d', "not valid JSON: Input data was truncated"),
        (b'{"a": "\\ud83d\\ude00', "not valid JSON: Input data was truncated"),
        (b"\xef\xbb\xbf{}", "not valid JSON"),
        (b'{"a": 1} {}', "not valid JSON"),
        (b"[]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b"[" * 100_000, "levels deep"),
        (b'{"a": [' + b'"",' * MAX_VALUES * 3 + b"1]}", "values"),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), "levels deep"),
        (b'{"a": [' + b"1," * MAX_VALUES + b"1]}", "values"),
        (b'{"a": ' + b"9" * 101 + b"}", "digits"),
        (b'{"a": ' + b"9" * 1_000_000 + b"}", "digits"),
        (b'{"a": 0.' + b"1" * 101 + b"}", "digits"),
    ],
)
def test_body_is_refused_in_words(body, words):
    with pytest.raises(ApiError) as raised:
        parsed(body)
    assert raised.value.status_code == 400
    assert raised.value.code == "invalid"
    assert words in raised.value.message


def test_body_may_be_as_deep_and_hold_numbers_as_long_as_the_limit():
    deep = b'{"a":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}"
    assert parsed(deep)["a"]
    assert parsed(b'{"a": ' + b"9" * 100 + b"}") == {"a": int("9" * 100)}


def test_brackets_and_digits_inside_strings_are_text():
    text = "[{" * 500 + '\\" ' + "7" * 500 + "," * (MAX_VALUES + 1)
    body = b'{"a": "' + text.replace("\\", "\\\\").replace('"', '\\"').encode() + b'"}'
    assert parsed(body) == {"a": text}


def test_surrogate_pairs_are_joined():
    assert parsed(b'{"a": "\\ud83d\\ude00"}') == {"a": "\N{GRINNING FACE}"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"title": "a\\u0000b"}', "title"),
        (b'{"tags": ["fine", "\\u0000"]}', "tags.1"),
        (b'{"a": {"b": [{"c": "\\u0000"}]}}', "a.b.0.c"),
        (b'{"a\\u0000": 1}', "a\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_nul_is_refused_with_its_field(body, field):
    with pytest.raises(ApiError) as raised:
        parsed(body)
    assert raised.value.code == "null_character"
    assert list(raised.value.fields) == [field]


def test_every_nul_is_told():
    with pytest.raises(ApiError) as raised:
        parsed(b'{"a": "\\u0000", "b": {"c": "\\u0000"}, "d": "fine"}')
    assert list(raised.value.fields) == ["a", "b.c"]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b'{"title": "a", "title": "b"}', ["title"]),
        (b'{"title": "a", "title": "a"}', ["title"]),
        (b'{"a": 1, "b": 2, "a": 3, "b": 4, "c": 5}', ["a", "b"]),
        (b'{"a": [{"deep": 1, "d\\u0065ep": 2}]}', ["deep"]),
        (b'{"a": {"x": {}}, "a": 1}', ["a"]),
    ],
)
def test_key_that_comes_twice_is_refused_by_name(body, fields):
    with pytest.raises(ApiError) as raised:
        parsed(body)
    assert (raised.value.code, list(raised.value.fields)) == ("invalid", fields)


def test_key_of_two_objects_may_be_the_same():
    value = {"a": {"a": 1}, "b": [{"a": ":"}, {"a": '":"'}]}
    assert parsed(json.dumps(value).encode()) == value


def test_escaped_backslash_before_u0000_is_not_a_nul():
    assert parsed(b'{"a": "\\\\u0000"}') == {"a": "\\u0000"}


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_any_storable_object_comes_through_unchanged(value):
    import msgspec

    body = msgspec.json.encode(value)
    if b"\\u0000" in body:
        return
    assert parsed(body) == value


@pytest.mark.thorough
@pytest.mark.parametrize(
    "body",
    [
        b'{"a": "' + b"\\n" * 2_000_000 + b'"}',
        b"[]," * 1_500_000,
        b'{"a": [' + b'"\\\\\\\\",' * 600_000 + b"1]}",
        b"]" * 4_000_000,
        b'"' * 4_000_000,
        b'{"a": "' + b"\\" * 4_000_000,
        b"[" * 4_000_000,
        b"9" * 4_000_000,
        b'{"a": "' + b"[" * 4_000_000 + b'"}',
    ],
    ids=[
        "escapes",
        "pairs",
        "strings",
        "closed",
        "quotes",
        "backslashes",
        "deep",
        "digits",
        "brackets",
    ],
)
def test_bodies_take_time_in_proportion_whatever_they_hold(body):
    def read(size):
        try:
            parsed(body[:size])
        except ApiError as error:
            assert error.status_code == 400

    assert growth(read, len(body)) < 4


@pytest.fixture
def api(db, settings):
    settings.ROOT_URLCONF = "tests.web.urls"
    client = Client()
    client.force_login(User.objects.create_user("ada"))
    return client


@pytest.mark.parametrize(
    ("content", "content_type", "status", "code"),
    [
        (b"[" * 100_000, "application/json", 400, "invalid"),
        (b"not json", "application/json", 400, "invalid"),
        (b'{"title": "\\u0000"}', "application/json; charset=utf-8", 400, "null_character"),
        (b'{"title": 5}', "application/json", 400, "invalid"),
        (b'{"title": "x"}', "text/plain", 415, "unsupported_media_type"),
        (b"title=x", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b'{"title": "x"}', "", 415, "unsupported_media_type"),
        (b"", "application/json", 400, "invalid"),
    ],
)
def test_odd_body_is_a_clear_4xx(api, content, content_type, status, code):
    response = api.generic("POST", "/api/echo/", content, content_type)
    assert response.status_code == status
    assert response.json()["error"]["code"] == code


def test_text_is_kept_to_the_last_space(api):
    response = api.generic("POST", "/api/echo/", b'{"title": " a \\n"}', "application/json")
    assert response.json() == {"title": " a \n"}
