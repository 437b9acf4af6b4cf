"""No page is forgotten: whatever answers with HTML is led to by a link, or named here."""

import pytest

from controlplane.tests.e2e import pages
from controlplane.tests.security.urls import places
from switches.tests.screens import browser

pytestmark = pytest.mark.e2e
# What is a part of a page, is shown to those who are not signed in, or is led to by what this
# night has none of: each is looked at where it is made.
BY_ITSELF = {"confirm", "override_remove", "reconfirm"}


def test_every_page_that_answers_is_led_to(night):
    client = browser(night)
    reached = set(pages.found(night))

    forgotten = set()
    for place in places():
        if not place.is_page or place.other_form or place.name in reached | BY_ITSELF:
            continue
        answer = client.get(place.path)
        is_html = answer.headers.get("Content-Type", "").startswith("text/html")
        if answer.status_code == 200 and is_html and b"<!doctype html>" in answer.content[:200]:
            forgotten.add(place.name)

    assert forgotten == set()
