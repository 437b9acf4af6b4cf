"""Emergency orders reconciled by several workers, among other changes and failures."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from controlplane.core import ticks
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import at_once, person, signed_in
from controlplane.core.http.tests.sessions import terminated_at
from switches.models import EmergencyOrder, Episode, Publication, Switch
from switches.services.expire import expire_due

from .orders import person_with_code, reconcile, reload, store, store_withdrawal

pytestmark = pytest.mark.django_db(transaction=True)


def check_closed(orders):
    """Check that each order is closed, in a version of its own."""
    rows = [reload(order) for order in orders]
    versions = [row.closed_version for row in rows]
    assert None not in versions
    assert len(set(versions)) == len(versions)
    assert max(versions) <= Publication.objects.get().version
    assert audit.verify().intact


def test_many_workers_reconcile_each_order_once():
    person_with_code()
    orders = [store(f"feature:f{number}") for number in range(12)]
    now = db_now()

    done = at_once(*[lambda: reconcile(now)] * 5)

    assert sum(done) == len(orders)
    assert Episode.objects.count() == len(orders)
    assert Approval.objects.filter(kind="break_glass_review").count() == len(orders)
    check_closed(orders)


def test_planes_that_insert_the_same_order_at_once_make_one_row():
    kim = person_with_code()
    pk = "6f1c7ec5-2a0e-4c8e-9f0b-0d5e5b7c9a11"
    by = {"by_type": "user", "by_name": "kim", "by_id": kim.pk}

    at_once(*[lambda: (store(id=pk, **by), reconcile())] * 4)
    reconcile()

    assert EmergencyOrder.objects.get().state == "reconciled"
    assert Episode.objects.count() == 1


def test_a_person_who_engages_at_once_gets_one_episode():
    lee, orders = signed_in(person("operator", "lee")), [store("feature:beta")]
    now = db_now()

    response, _ = at_once(lambda: lee.engage("feature:beta"), lambda: reconcile(now))

    assert response.status_code in {200, 409}
    assert Episode.objects.count() == 1
    assert reload(orders[0]).state == ("attached" if response.status_code == 200 else "reconciled")
    check_closed(orders)


def test_a_person_who_releases_at_once_releases_the_earlier_episode_or_this_one():
    lee = signed_in(person("approver", "lee"))
    lee.engage("feature:beta")
    orders = [store("feature:beta")]
    body = {"justification": "duplicates refunded, queue empty", "mode": "immediate"}

    response, _ = at_once(lambda: lee.post("/switches/feature/beta/release", body), reconcile)

    assert response.status_code == 200
    order = reload(orders[0])
    # Released after the order was attached, or before it became an episode of its own.
    is_engaged = Switch.objects.get(pk="feature:beta").state == "engaged"
    assert is_engaged == (order.state == "reconciled")
    check_closed(orders)


def test_a_withdrawal_at_once_is_in_time_or_late():
    order = store("feature:beta")
    withdrawal = store_withdrawal(order)
    now = db_now()

    at_once(*[lambda: reconcile(now)] * 3)

    assert (reload(order).state, reload(withdrawal).state) == ("withdrawn", "withdrawn")
    check_closed([order, withdrawal])


def test_an_expiry_at_once_leaves_the_switch_engaged():
    lee = signed_in(person("operator", "lee"))
    lee.engage("feature:beta", on_expiry="release")
    past = db_now() - timedelta(minutes=5)
    Episode.objects.update(engaged_at=past - timedelta(hours=1), expires_at=past)
    order = store("feature:beta")
    now = db_now()

    at_once(lambda: expire_due(now), lambda: reconcile(now))
    expire_due(db_now())

    assert Switch.objects.get(pk="feature:beta").state == "engaged"
    check_closed([order])


@pytest.mark.parametrize(
    "statement",
    [
        r"switches_publication.*FOR UPDATE",
        "INSERT INTO .switches_episode",
        "INSERT INTO .core_audit",
    ],
)
def test_a_session_that_ends_in_between_changes_nothing_and_the_next_tick_does_it(statement):
    order = store("feature:beta")
    version = Publication.objects.get().version

    with terminated_at(statement, 2), pytest.raises(OperationalError):
        reconcile()
    connection.close()

    assert reload(order).state == "received"
    assert Publication.objects.get().version == version
    assert not Episode.objects.exists()
    assert reconcile() == 1
    check_closed([order])


def test_a_session_that_ends_once_is_retried():
    order = store("feature:beta")

    with terminated_at("INTO .core_auditentry", 1) as ended:
        assert reconcile() == 1

    assert len(ended) == 1
    assert Episode.objects.count() == 1
    check_closed([order])


def test_the_tick_is_registered_and_idle_without_orders():
    assert "emergency.reconcile" in ticks.find_idle(["emergency.reconcile"])

    store("feature:beta")

    assert "emergency.reconcile" not in ticks.find_idle(["emergency.reconcile"])
    ticks.run("emergency.reconcile", "test")
    assert Episode.objects.count() == 1
    assert "emergency.reconcile" in ticks.find_idle(["emergency.reconcile"])
