"""Messages about emergency orders, as people read them."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.outbox.renderer import render
from switches.models import EmergencyOrder
from switches.tests import messages

from .orders import reconcile, store, store_by, store_withdrawal

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _slack(settings):
    messages.configure(settings)


def read_message(event):
    (message,) = messages.find(event)
    rendered = render(event, message.payload)
    return rendered.title, dict(rendered.lines), rendered.path


def test_an_engagement_says_that_it_was_ordered_during_the_outage():
    order = store(at=db_now() - timedelta(hours=2), plane="dp-7")
    reconcile()

    _, lines, _ = read_message("switch.engaged")

    assert lines["Emergency order"] == (
        f"during the outage, user:kim engaged it on the data plane dp-7 at"
        f" {order.at:%Y-%m-%d %H:%M:%S} UTC; stored at {order.received_at:%Y-%m-%d %H:%M:%S} UTC"
    )


def test_an_order_that_was_stored_at_once_mentions_no_outage():
    store(at=db_now())
    reconcile()

    _, lines, _ = read_message("switch.engaged")

    assert lines["Emergency order"].startswith("user:kim engaged it on the data plane dp-1 at ")
    assert "outage" not in lines["Emergency order"]


def test_a_review_without_a_rule_names_none():
    store()
    reconcile()

    title, lines, _ = read_message("review.opened")

    assert title.endswith("Emergency order: segment:finance engaged on the data plane dp-1")
    assert "Rule overridden" not in lines
    assert "can't evaluate safety rules" in lines["Reason"]


def test_a_refusal_says_why_until_when_it_blocks_and_what_to_do():
    order = store_by(person("operator", "lee"))
    reconcile()

    title, lines, path = read_message("emergency_order.refused")

    assert title == "Emergency order for segment:finance REFUSED"
    assert lines["Why"] == "lee had no emergency code at the time of the order."
    assert lines["What to do"] == (
        "If segment:finance must stay blocked, engage it now: the block of this order ends by"
        " itself."
    )
    until = EmergencyOrder.objects.get().blocks_until
    assert lines["Blocks until"] == f"{until:%Y-%m-%d %H:%M:%S} UTC"
    assert lines["Data plane"] == f"dp-1, {order.at:%Y-%m-%d %H:%M:%S} UTC"
    assert path == "/switches/segment/finance/"


def test_a_refused_withdrawal_says_that_it_has_no_effect():
    order = store()
    lee = person("operator", "lee")
    store_withdrawal(order, by_type="user", by_name="lee", by_id=lee.pk)
    reconcile()

    title, lines, _ = read_message("emergency_order.refused")

    assert title == "Withdrawal of the emergency order for segment:finance REFUSED"
    assert lines["What to do"] == "Nothing: the withdrawal has no effect."
    assert "Blocks until" not in lines


def test_a_late_withdrawal_says_that_the_switch_stays_engaged():
    order = store()
    reconcile()
    store_withdrawal(order)
    reconcile()

    title, lines, _ = read_message("emergency_order.withdrawn_late")

    assert title == "segment:finance stays ENGAGED: its emergency order was withdrawn too late"
    assert lines["Reason"] == "it was the wrong switch"
