"""Every HTML page is reachable by links, or listed here."""

import pytest

from controlplane.tests.e2e import pages
from controlplane.tests.security.urls import places
from switches.tests.browsers import browser

pytestmark = pytest.mark.e2e


def test_every_page_that_answers_is_led_to(night):
    client = browser(night)
    reached, by_itself = set(pages.find_pages(night)), pages.by_itself()

    forgotten = set()
    for place in places():
        if not place.is_page or place.other_form or place.name in reached | set(by_itself):
            continue
        answer = client.get(place.path)
        is_html = answer.headers.get("Content-Type", "").startswith("text/html")
        if answer.status_code == 200 and is_html and b"<!doctype html>" in answer.content[:200]:
            forgotten.add(place.name)

    assert forgotten == set()
    listed = [*by_itself.values(), *pages.MAIN]
    assert [path for path in listed if client.get(path).status_code != 200] == []
