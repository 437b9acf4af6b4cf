"""Emergency orders that need a person, on *Needs attention*."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person, signed_in
from controlplane.core.page_registry import ATTENTION_SOURCES
from switches.emergency import attention
from switches.emergency.reconciliation import REFUSED_BLOCKS_FOR

from .orders import reconcile, store, store_by, store_withdrawal

pytestmark = pytest.mark.django_db
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


def test_sources_are_found_by_the_registry():
    known = {source.function for source in ATTENTION_SOURCES.values()}

    assert {
        attention.list_refused,
        attention.list_withdrawn_late,
        attention.list_waiting,
    } <= known


class TestRefused:
    def test_is_listed_until_its_block_ends(self):
        now = db_now()
        store_by(person("operator", "lee"))
        reconcile(now)

        (item,) = attention.list_refused(now)

        assert item.severity == "critical"
        assert item.title == "The emergency order for segment:finance was refused"
        assert item.detail.startswith("lee had no emergency code at the time of the order.")
        assert (item.since, item.due_at) == (now, now + REFUSED_BLOCKS_FOR)
        (engage,) = item.actions
        assert engage.path.startswith("/switches/engage/?key=segment%3Afinance&reason=card")

        reconcile(now + REFUSED_BLOCKS_FOR)
        assert attention.list_refused(now + REFUSED_BLOCKS_FOR) == []

    def test_is_not_listed_once_somebody_engaged_the_switch(self):
        lee = person("operator", "lee")
        store_by(lee)
        reconcile()

        signed_in(lee).engage("segment:finance")

        assert attention.list_refused(db_now()) == []

    def test_a_malformed_one_has_no_button(self):
        store("galaxy:x")
        reconcile()

        (item,) = attention.list_refused(db_now())

        assert (item.path, item.actions) == ("/attention/", ())

    def test_the_page_shows_it_with_the_form_filled_in(self):
        lee = person("operator", "lee")
        store_by(lee)
        reconcile()
        browser = browser_of(lee)

        page = browser.get("/attention/").content.decode()
        (item,) = attention.list_refused(db_now())
        form = browser.get(item.actions[0].path).content.decode()

        assert "The emergency order for segment:finance was refused" in page
        assert "card payments charged twice" in form


class TestWithdrawnLate:
    def test_is_listed_for_a_day_while_the_switch_is_engaged(self):
        order = store()
        reconcile()
        store_withdrawal(order)
        now = db_now()
        reconcile(now)

        (item,) = attention.list_withdrawn_late(now)

        assert item.title == (
            "segment:finance stays engaged: its emergency order was withdrawn too late"
        )
        assert [action.path for action in item.actions] == ["/switches/segment/finance/release/"]
        assert attention.list_withdrawn_late(now + DAY) == []

    def test_is_not_listed_once_somebody_releases_it(self):
        order = store()
        reconcile()
        store_withdrawal(order)
        reconcile()
        body = {"justification": "duplicates refunded, queue empty"}

        signed_in(person("operator", "lee")).post("/switches/segment/finance/release", body)

        assert attention.list_withdrawn_late(db_now()) == []


class TestWaiting:
    def test_is_listed_if_nobody_reconciles_it(self):
        order = store()

        assert attention.list_waiting(order.received_at + 10 * SECOND) == []
        (item,) = attention.list_waiting(order.received_at + MINUTE)

        assert item.title == "An emergency order for segment:finance is not reconciled"
        assert "waited for 1 min;" in item.detail

    def test_reconciled_ones_are_not_listed(self):
        order = store()
        reconcile()

        assert attention.list_waiting(order.received_at + MINUTE) == []
