"""The navigation marks the shown section; lists link to their other pages."""

import pytest
from django.test import RequestFactory

from controlplane.core.templatetags.navigation import (
    find_section,
    nav_count,
    older_pages,
    pages,
)
from switches.tests.browsers import text


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("/", "switches"),
        ("/?state=overdue", "switches"),
        ("/switches/feature/nl2sql/", "switches"),
        ("/alerts/7/", "alerts"),
        ("/slos/thresholds/", "slos"),
        ("/breakers/core/oracle/?calls=1h", "breakers"),
        ("/dead-letters/", "dead-letters"),
        ("/find/", "find"),
    ],
)
def test_path_belongs_to_a_section(path, section):
    assert find_section(path) == section


@pytest.mark.parametrize(
    ("number", "is_complete", "shown"),
    [
        (0, True, ""),
        (7, True, "7 alerting"),
        (None, True, "? number unknown"),
        (0, False, "? number unknown"),
        (3, False, "3+ or more alerting"),
    ],
)
def test_count_that_is_not_known_is_not_left_out(number, is_complete, shown):
    assert text(nav_count(number, "alerting", "stop", is_complete)) == shown


@pytest.mark.parametrize(
    ("number", "has_next", "previous", "following"),
    [
        (1, False, "", ""),
        (1, True, "", "?q=a+b&page=2"),
        (2, True, "?q=a+b&page=1", "?q=a+b&page=3"),
        (3, False, "?q=a+b&page=2", ""),
    ],
)
def test_links_to_pages_keep_the_filters(number, has_next, previous, following):
    request = RequestFactory().get("/", {"q": "a b", "page": 2})

    assert pages({"request": request}, number, has_next) == {
        "previous": previous,
        "next": following,
    }


@pytest.mark.parametrize(
    ("query", "older", "newest_url", "older_url"),
    [
        ("q=a+b", None, "", ""),
        ("q=a+b", 40, "", "?q=a+b&before=40#recent"),
        ("q=a+b&before=40", 7, "?q=a+b#recent", "?q=a+b&before=7#recent"),
        ("before=40", None, "?#recent", ""),
    ],
)
def test_links_to_older_entries_keep_the_filters(query, older, newest_url, older_url):
    request = RequestFactory().get(f"/?{query}")

    links = older_pages({"request": request}, older, anchor="#recent")

    assert links == {"newest": newest_url, "older": older_url}


@pytest.mark.parametrize(("is_refresh", "url"), [(True, "?before=7"), (False, "?since=5&before=7")])
def test_links_leave_out_the_poll_token_but_keep_a_filter_by_time(is_refresh, url):
    request = RequestFactory().get("/", {"since": 5})
    request.htmx = is_refresh

    assert older_pages({"request": request}, 7)["older"] == url
