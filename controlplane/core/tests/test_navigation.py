"""The navigation marks the shown section; lists link to their other pages."""

import pytest
from django.test import RequestFactory

from controlplane.core.templatetags.navigation import find_section, nav_count, pages
from switches.tests.browsers import text


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("/", "switches"),
        ("/?state=overdue", "switches"),
        ("/switches/feature/nl2sql/", "switches"),
        ("/alerts/7/", "slos"),
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
    request = RequestFactory().get("/", {"q": "a b", "page": 2, "since": "7-1"})

    assert pages({"request": request}, number, has_next) == {
        "previous": previous,
        "next": following,
    }
