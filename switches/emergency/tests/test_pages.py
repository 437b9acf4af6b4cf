"""Emergency orders on the page of a switch."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, signed_in
from switches.emergency.reconciliation import REFUSED_BLOCKS_FOR
from switches.models import Episode
from switches.tests.browsers import browser_as, page, text

from .orders import person_with_code, reconcile, store, store_by, store_withdrawal

pytestmark = pytest.mark.django_db
FINANCE = "/switches/segment/finance/"


@pytest.fixture
def read_page():
    browser = browser_as("viewer")
    return lambda: text(page(browser.get(FINANCE)))


def test_the_engagement_says_where_it_was_ordered_and_when_it_was_taken_over(read_page):
    order = store(plane="dp-7")
    now = db_now()
    reconcile(now)

    shown = read_page()

    assert "By emergency order on the data plane dp-7, " in shown
    assert f"{order.at:%H:%M:%S}" in shown
    assert f"taken over {now:%-d %b %Y %H:%M:%S}" in shown
    assert "The emergency order that engaged the switch." in shown


def test_it_names_who_else_ordered_it_and_late_withdrawals(read_page):
    order = store()
    store_by(person_with_code("lee"), reason="ledger rows are missing")
    reconcile()
    store_withdrawal(order, reason="it was the wrong switch")
    reconcile()

    shown = read_page()

    assert "Also ordered by user:lee on the data plane dp-1" in shown
    assert "Order withdrawn too late by user:kim on the data plane dp-1" in shown


def test_ended_episodes_keep_it_in_the_history(read_page):
    store()
    reconcile()
    Episode.objects.update(ended_at=db_now(), ended_how="released", ended_by="user:kim")

    assert "By emergency order on the data plane dp-1" in read_page()


def test_the_page_of_a_released_switch_says_that_a_refused_order_blocks_it(read_page):
    store_by(person("operator", "lee"))
    reconcile()

    shown = read_page()

    assert "An emergency order blocks this switch for" in shown
    assert "It was refused: lee had no emergency code" in shown

    reconcile(db_now() + REFUSED_BLOCKS_FOR)
    assert "An emergency order blocks" not in read_page()


def test_ordinary_engagements_mention_no_order(read_page):
    signed_in(person("operator", "lee")).engage("segment:finance")

    assert "emergency order" not in read_page().lower()
