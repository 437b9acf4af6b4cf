"""Emergency drills: a person rehearses an emergency order on a data plane."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person
from controlplane.core.jobs.models import Job
from switches.drills import attention
from switches.drills.job import ORDERED_WITHIN
from switches.drills.tests.drill_helpers import WHY, audit_actions, begin, turn
from switches.emergency.tests import orders
from switches.models import Drill, Switch
from switches.tests import messages

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
SWITCH = "feature:emergency-drill"


@pytest.fixture
def now():
    return db_now()  # Orders are stored at the database's time.


@pytest.fixture
def drill(now, settings):
    messages.configure(settings)
    return begin(SWITCH, "emergency", now=now)


def run_turns(*moments):
    for moment in moments:
        turn(moment)
    return Drill.objects.get()


def order_at(moment, **fields):
    return orders.store(SWITCH, at=moment, **fields)


@pytest.mark.usefixtures("drill")
def test_it_asks_for_an_order_and_waits(now):
    running = run_turns(now, now + 60 * SECOND)

    assert running.live
    (message,) = messages.find("drill.order_requested", switch=SWITCH)
    assert message.payload["reason"] == WHY
    assert "/emergency/" in message.payload["said"]


@pytest.mark.usefixtures("drill")
def test_an_order_that_becomes_an_engagement_passes_it(now):
    turn(now)
    order = order_at(now + SECOND, plane="dp-7")
    orders.reconcile(now + 3 * SECOND)

    passed = run_turns(now + 4 * SECOND, now + 5 * SECOND)

    assert (passed.live, passed.passed) == (False, True)
    assert passed.measured["order"] == {
        "id": str(order.pk),
        "by": "user:kim",
        "plane": "dp-7",
        "milliseconds": 2000,
    }
    assert Job.objects.get().outcome == (
        "user:kim ordered it on the data plane dp-7, and it was an ordinary engagement 2,000 ms"
        " later. Release the switch and sign its review."
    )
    assert messages.find("drill.passed", switch=SWITCH)
    assert audit_actions() == ["drill.begun", "drill.passed"]
    assert Switch.objects.get().last_proven_at is None  # No service has shown that it obeys.


@pytest.mark.usefixtures("drill")
def test_an_order_that_is_not_reconciled_yet_does_not_pass_it(now):
    order_at(now + SECOND)

    assert run_turns(now, now + 2 * SECOND, now + 3 * SECOND).live


@pytest.mark.usefixtures("drill")
def test_without_an_order_it_fails(now):
    failed = run_turns(now, now + ORDERED_WITHIN, now + ORDERED_WITHIN + SECOND)

    assert failed.passed is False
    assert failed.failure_reason == "No emergency order for it arrived within 15 minutes."
    assert messages.find("drill.failed", switch=SWITCH)
    (item,) = attention.list_failed_drills(now)
    assert item.title == f"Drill of {SWITCH} failed"


@pytest.mark.usefixtures("drill")
def test_a_refused_order_fails_it(now):
    lee = person("operator", "lee")
    orders.store_by(lee, SWITCH, at=now + SECOND)
    orders.reconcile(now + 2 * SECOND)

    failed = run_turns(now + 3 * SECOND, now + 4 * SECOND)

    assert failed.failure_reason == (
        "The emergency order was refused: lee had no emergency code at the time of the order."
    )


@pytest.mark.usefixtures("drill")
def test_a_withdrawn_order_fails_it(now):
    orders.store_withdrawal(order_at(now + SECOND))
    orders.reconcile(now + 2 * SECOND)

    failed = run_turns(now + 3 * SECOND, now + 4 * SECOND)

    assert "was withdrawn before" in failed.failure_reason


@pytest.mark.usefixtures("drill")
def test_orders_for_other_switches_and_older_ones_do_not_count(now):
    orders.store("feature:other", at=now)
    orders.reconcile(now + SECOND)

    assert run_turns(now + 2 * SECOND).live


def test_the_form_begins_one_without_drill_instances():
    browser = browser_of(person("operator", "lee"))
    form = {"switch": SWITCH, "mode": "emergency", "reason": WHY}

    browser.post("/drills/new/", form)

    assert Drill.objects.get().mode == "emergency"
    page = browser.get("/drills/").content.decode()
    assert "Wait for an emergency order" in page
    assert "page /emergency/ of any data plane" in page
