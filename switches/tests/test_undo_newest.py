"""The undo key: only the newest engage, and none if ambiguous."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from switches.models import Episode
from switches.tests.browsers import DIALOG, browser, browser_as, engaged, page, text

pytestmark = pytest.mark.django_db


def undo(client, key, **sent):
    return client.post(f"/switches/feature/{key}/undo/", sent, headers=DIALOG)


def undone():
    return [one.switch_id for one in Episode.objects.filter(ended_how="undone")]


def engage_both(*, seconds_ago):
    """Engage two switches as one person, each some seconds ago, and return the person."""
    now = db_now()
    first, second = (now - timedelta(seconds=ago) for ago in seconds_ago)
    kim = engaged("feature:ontology", now=first)
    engaged("feature:nl2sql", now=second)
    return kim


def test_older_one_is_refused_by_the_key_and_taken_back_by_its_button():
    kim = engage_both(seconds_ago=(15, 3))

    by_key = undo(browser(kim), "ontology", if_newest="1")

    assert by_key.status_code == 409
    assert "You engaged feature:nl2sql after feature:ontology" in text(page(by_key))
    assert undone() == []
    assert undo(browser(kim), "ontology").status_code == 204
    assert undone() == ["feature:ontology"]


def test_newest_is_taken_back_by_the_key():
    kim = engage_both(seconds_ago=(15, 3))

    assert undo(browser(kim), "nl2sql", if_newest="1").status_code == 204
    assert undone() == ["feature:nl2sql"]


def test_two_engaged_at_once_are_told_apart_by_nobody():
    kim = engage_both(seconds_ago=(6, 5))

    response = undo(browser(kim), "nl2sql", if_newest="1")

    assert response.status_code == 409
    assert "at once. Nothing was undone" in text(page(response))
    assert undone() == []


def test_what_others_engage_later_is_in_nobodys_way():
    now = db_now()
    kim = engaged("feature:ontology", now=now - timedelta(seconds=15))
    browser_as("operator").post(
        "/switches/engage/",
        {"scope": "feature", "key": "nl2sql", "reason": "Ledger drifts since 01:00, INC-1"},
    )

    assert undo(browser(kim), "ontology", if_newest="1").status_code == 204
