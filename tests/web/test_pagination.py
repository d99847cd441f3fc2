"""Cursor pages: every row once, whatever is added meanwhile, in both directions."""

import uuid
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from accounts.models import ApiToken, User
from web.errors import ApiError
from web.pagination import CursorPagination

pytestmark = pytest.mark.django_db

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def owner():
    return User.objects.create_user("ada")


def add(owner, minute):
    token = ApiToken.objects.create(owner=owner, name="x", digest=uuid.uuid4().hex, scopes=["read"])
    ApiToken.objects.filter(id=token.id).update(created=START + timedelta(minutes=minute))
    return token.id


def fetch(owner, url="/api/tokens/", *, limit=None):
    request = Request(APIRequestFactory().get(url, {"limit": limit} if limit else None))
    paginator = CursorPagination()
    rows = paginator.paginate_queryset(ApiToken.objects.filter(owner=owner), request)
    return paginator.get_paginated_response([row.id for row in rows]).data


def walk(owner, url, direction):
    while url:
        page = fetch(owner, url)
        yield page["results"]
        url = page[direction]


def test_first_page_has_the_shape_of_every_list(owner):
    ids = [add(owner, minute) for minute in range(3)]
    page = fetch(owner, limit=2)
    assert list(page) == ["count", "next", "previous", "results"]
    assert (page["count"], page["previous"]) == (3, None)
    assert page["results"] == [ids[2], ids[1]]
    assert urlsplit(page["next"]).path == "/api/tokens/"
    assert parse_qs(urlsplit(page["next"]).query)["limit"] == ["2"]


def test_empty_list_has_no_neighbours(owner):
    assert fetch(owner) == {"count": 0, "next": None, "previous": None, "results": []}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pages_back_are_the_pages_forth(owner, size):
    expected = [add(owner, minute) for minute in (5, 4, 4, 4, 2, 1)]
    forth = list(walk(owner, f"/api/tokens/?limit={size}", "next"))
    assert sorted(sum(forth, [])) == sorted(expected)
    last = f"/api/tokens/?limit={size}"
    while following := fetch(owner, last)["next"]:
        last = following
    back = list(walk(owner, last, "previous"))
    assert sum(back[::-1], []) == sum(forth, [])


def test_page_whose_rows_are_gone_leads_back_to_the_first(owner):
    first, *others = [add(owner, -minute) for minute in range(3)]
    following = fetch(owner, limit=1)["next"]
    ApiToken.objects.filter(id__in=others).delete()
    page = fetch(owner, following)
    assert (page["results"], page["next"]) == ([], None)
    assert fetch(owner, page["previous"])["results"] == [first]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    minutes=st.lists(st.integers(0, 4), max_size=12),
    size=st.integers(1, 4),
    added=st.lists(st.lists(st.integers(-1, 5), max_size=2), max_size=6),
)
def test_rows_that_were_there_come_once_in_order_whatever_is_added(owner, minutes, size, added):
    ApiToken.objects.all().delete()
    there = {add(owner, minute) for minute in minutes}
    order = list(ApiToken.objects.values_list("id", flat=True))
    seen, additions = [], iter(added)
    for page in walk(owner, f"/api/tokens/?limit={size}", "next"):
        assert len(page) <= size
        seen += page
        for minute in next(additions, []):
            add(owner, minute)
    assert len(seen) == len(set(seen))
    assert [each for each in seen if each in there] == order


def test_limit_may_be_200(owner):
    ApiToken.objects.bulk_create(
        ApiToken(owner=owner, name="x", digest=uuid.uuid4().hex, scopes=[]) for _ in range(202)
    )
    assert len(fetch(owner, limit="200")["results"]) == 200
    assert len(fetch(owner)["results"]) == 50


@pytest.mark.parametrize("limit", ["0", "201", "-1", "x", "1.5", "٣", " 1", "9" * 5000])
def test_limit_that_is_no_number_from_1_to_200_is_refused_by_name(owner, limit):
    with pytest.raises(ApiError) as raised:
        fetch(owner, limit=limit)
    assert (raised.value.status_code, list(raised.value.fields)) == (400, ["limit"])


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "é",
        "AAAA",
        "W10",  # []
        "W3RydWVd",  # [true]
        "W3RydWUsIngiLCJ5Il0",  # [true,"x","y"]
        "W2ZhbHNlLCIyMDI2LTAxLTAxIiwieCJd",  # [false,"2026-01-01","x"]
        "W2ZhbHNlLDEsMl0",  # [false,1,2]
        "eyJhIjoxfQ",  # {"a":1}
        "A" * 100_001,
    ],
)
def test_cursor_that_is_none_of_ours_is_refused_by_name(owner, cursor):
    add(owner, 0)
    with pytest.raises(ApiError) as raised:
        fetch(owner, f"/api/tokens/?cursor={cursor}")
    assert (raised.value.status_code, list(raised.value.fields)) == (400, ["cursor"])


def test_empty_cursor_is_refused_rather_than_taken_for_the_first_page(owner):
    with pytest.raises(ApiError):
        fetch(owner, "/api/tokens/?cursor=")


def test_page_costs_two_queries_whatever_its_size(owner, django_assert_num_queries):
    for minute in range(5):
        add(owner, minute)
    for size in (1, 5):
        with django_assert_num_queries(2):
            fetch(owner, limit=size)
