"""Cursor pages: complete, ordered, stable under inserts and deletes, safe from forgery."""

import base64
import json

import pytest

from controlplane.core.http.tests.callers import Api, as_role

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator():
    operator = as_role("operator")
    for number in range(7):
        operator.patch(f"/switches/feature/f{number}/", {"owner": "team"})
    return operator


def follow(api: Api, path: str, limit: int, link: str = "next"):
    """Return all pages from `path` on, following their links."""
    page = api.get(path, {"limit": limit}).json() if "?" not in path else at_link(api, path)
    pages = [page]
    while page[link]:
        page = at_link(api, page[link])
        pages.append(page)
    return pages


def at_link(api, link):
    return api.client.get(link.removeprefix("http://testserver")).json()


def keys(page):
    return [row["key"] for row in page["results"]]


def cursor(*value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8, 200])
def test_pages_together_are_the_whole_list_in_order(operator, limit):
    pages = follow(operator, "/switches/", limit)

    assert [key for page in pages for key in keys(page)] == [f"f{number}" for number in range(7)]
    assert all(len(page["results"]) <= limit for page in pages)
    assert pages[0]["previous"] is None
    assert pages[-1]["next"] is None


@pytest.mark.parametrize("limit", [1, 2, 3, 6])
def test_way_back_shows_the_same_pages(operator, limit):
    there = follow(operator, "/switches/", limit)

    back = follow(operator, there[-1]["previous"], limit, "previous")

    assert [keys(page) for page in reversed(back)] == [keys(page) for page in there[:-1]]
    assert back[-1]["previous"] is None


def test_newest_first_list_goes_down(operator):
    rows = [row["id"] for page in follow(operator, "/audit/", 3) for row in page["results"]]

    assert rows == [7, 6, 5, 4, 3, 2, 1]


def test_page_after_a_cursor_does_not_move_when_rows_are_added_before_it(operator):
    first = operator.get("/switches/", {"limit": 3}).json()
    operator.patch("/switches/feature/a-newcomer/", {"owner": "team"})
    operator.patch("/switches/feature/f21/", {"owner": "team"})

    second = at_link(operator, first["next"])

    assert keys(second) == ["f21", "f3", "f4"]
    assert keys(at_link(operator, second["previous"])) == ["f0", "f1", "f2"]


def test_link_keeps_the_filters_and_escapes_them(operator):
    operator.patch("/switches/feature/f1/", {"description": "결제 & more"})
    operator.patch("/switches/feature/f3/", {"description": "결제 & more"})

    first = operator.get("/switches/", {"q": "결제 & m", "limit": 1}).json()

    assert keys(first) == ["f1"]
    assert keys(at_link(operator, first["next"])) == ["f3"]


def test_more_than_the_largest_page_counts_as_that(operator):
    response = operator.get("/switches/", {"limit": "99999999999999999999"})

    assert response.status_code == 200
    assert len(response.json()["results"]) == 7


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "ten", "٣", "1e3", " 1", "00"])
def test_wrong_limit_is_named(operator, limit):
    response = operator.get("/switches/", {"limit": limit})

    assert response.status_code == 400
    assert "limit" in response.json()["errors"]


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "%%%",
        "é",
        "a" * 5000,
        cursor("next"),
        cursor("next", "a", "b"),
        cursor("sideways", "feature:f1"),
        cursor("next", 5),
        cursor("next", None),
        cursor("next", ["feature:f1"]),
        cursor("next", "nul\x00"),
        cursor(["next"], "feature:f1"),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        base64.urlsafe_b64encode(b"{}").decode(),
        base64.urlsafe_b64encode(b"5").decode(),
    ],
)
def test_forged_cursor_is_named(operator, text):
    response = operator.get("/switches/", {"cursor": text})

    assert response.status_code == 400
    assert "cursor" in response.json()["errors"]


@pytest.mark.parametrize("position", ["1", True, 1.5, None])
def test_cursor_of_another_kind_is_named(operator, position):
    assert operator.get("/audit/", {"cursor": cursor("next", position)}).status_code == 400


@pytest.mark.parametrize("position", [2**63, -(2**63), 2**200])
def test_cursor_beyond_every_row_is_an_end_and_no_failure(operator, position):
    assert operator.get("/audit/", {"cursor": cursor("next", position)}).status_code in {200, 400}


def test_empty_list_is_one_empty_page():
    assert as_role("viewer").get("/approvals/").json() == {
        "next": None,
        "previous": None,
        "results": [],
    }
