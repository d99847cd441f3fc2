import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.arguments import parse_arguments
from tools.exceptions import ToolError


def refusal(text: str) -> str:
    with pytest.raises(ToolError) as caught:
        parse_arguments(text)
    return str(caught.value)


@pytest.mark.parametrize("text", [None, "", " \t\n", "null", "\0", "{}"])
def test_parse_takes_nothing_for_an_empty_object(text):
    assert parse_arguments(text) == {}


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"b": [{"a": 1, "a": 1}]}'])
def test_parse_refuses_a_key_that_comes_twice(text):
    assert refusal(text) == "the arguments hold the key 'a' twice"


def test_parse_refuses_keys_that_differ_only_in_what_is_cleaned_away():
    assert "twice" in refusal(r'{"a": 1, "a\u0000": 2}')


@pytest.mark.parametrize("text", ["{'a': 1}", '{"a": 1,}', '{"a": 1} {"b": 2}', "{"])
def test_parse_says_where_json_ends_to_make_sense(text):
    assert "not valid JSON" in refusal(text)
    assert f"of {len(text)})" in refusal(text)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_parse_refuses_constants_of_other_languages(constant):
    assert refusal(f'{{"a": {constant}}}') == f"the arguments hold {constant}, which is not JSON"


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 100_000, "1" * 10_000])
def test_parse_refuses_what_python_cannot_read(value):
    assert "too deeply or hold too long a number" in refusal('{"a": ' + value)


def test_parse_cleans_every_string():
    text = r'{"a\u0000": ["\ud83d", {"b": "\ud83d\ude00\u0000"}], "n": 1.5, "t": true}'
    assert parse_arguments(text) == {"a": ["�", {"b": "😀"}], "n": 1.5, "t": True}


keys = st.text("abc", max_size=3)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(keys, inner),
    max_leaves=5,
)


@given(st.dictionaries(keys, json_values, max_size=3), st.booleans())
def test_parse_gives_back_what_was_written(value, ascii_only):
    assert parse_arguments(json.dumps(value, ensure_ascii=ascii_only)) == value
