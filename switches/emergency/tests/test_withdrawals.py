"""Withdrawals of emergency orders, before and after these became episodes."""

from datetime import timedelta
from uuid import UUID, uuid5

import pytest

from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.signatures import SigningKey
from switches import services
from switches.emergency import reconciliation
from switches.models import EmergencyOrder, Episode, Publication
from switches.tests import messages

from .orders import (
    person_with_code,
    reconcile,
    reload,
    store,
    store_by,
    store_withdrawal,
)

pytestmark = pytest.mark.django_db
PK = "6f1c7ec5-2a0e-4c8e-9f0b-0d5e5b7c9a11"


def actions():
    return list(AuditEntry.objects.order_by("id").values_list("action", "actor_name", "target"))


def test_an_order_withdrawn_before_leaves_audit_rows_alone(settings):
    messages.configure(settings)
    order = store()
    withdrawal = store_withdrawal(order)
    before = Publication.objects.get().version

    assert reconcile() == 2

    order, withdrawal = reload(order), reload(withdrawal)
    assert (order.state, withdrawal.state) == ("withdrawn", "withdrawn")
    assert before < order.closed_version < withdrawal.closed_version
    assert actions()[-2:] == [
        ("emergency_order.accepted", "kim", "segment:finance"),
        ("emergency_order.withdrawn", "kim", "segment:finance"),
    ]
    assert not Episode.objects.exists()
    assert not Approval.objects.exists()
    assert not OutboxMessage.objects.exclude(event__startswith="user.").exists()


def test_a_withdrawal_dated_before_its_order_by_a_slow_clock_counts():
    order = store()
    withdrawal = store_withdrawal(order, at=order.at - timedelta(seconds=30))

    reconcile()
    reconcile()

    assert (reload(order).state, reload(withdrawal).state) == ("withdrawn", "withdrawn")
    assert not Episode.objects.exists()


def test_data_planes_never_get_a_closed_withdrawal_of_an_open_order():
    order = store()
    withdrawal = store_withdrawal(order, at=order.at - timedelta(seconds=30))

    reconcile()
    reconcile()

    assert reload(order).closed_version < reload(withdrawal).closed_version


def test_a_withdrawal_that_arrives_before_its_order_counts():
    withdrawal = store_withdrawal(EmergencyOrder(pk=PK, switch="segment:finance", at=db_now()))
    reconcile()

    order = store(id=PK)
    reconcile()

    assert (reload(order).state, reload(withdrawal).state) == ("withdrawn", "withdrawn")
    assert not Episode.objects.exists()


def test_after_the_episode_exists_it_stays_and_people_are_told(settings):
    messages.configure(settings)
    order = store()
    reconcile()
    withdrawal = store_withdrawal(order)

    reconcile()

    withdrawal = reload(withdrawal)
    assert withdrawal.state == "late_withdrawal"
    assert withdrawal.closed_version == Publication.objects.get().version
    assert Episode.objects.get().ended_at is None
    (message,) = messages.find("emergency_order.withdrawn_late")
    assert message.payload["reason"] == "it was the wrong switch"
    assert actions()[-1] == ("emergency_order.withdrawn_late", "kim", "segment:finance")


def test_a_late_withdrawal_of_an_attached_order_stays_too():
    lee = person("operator", "lee").as_actor()
    services.engage(
        scope="segment",
        key="finance",
        reason="ledger rows are missing",
        expires_in="1h",
        actor=lee,
        now=db_now(),
    )
    order = store()
    reconcile()
    withdrawal = store_withdrawal(order)

    reconcile()

    assert reload(withdrawal).state == "late_withdrawal"
    assert Episode.objects.get().ended_at is None


def test_after_the_episode_has_ended_a_withdrawal_changes_nothing():
    order = store("feature:beta")
    reconcile()
    services.release(
        scope="feature",
        key="beta",
        mode="immediate",
        justification="duplicates refunded",
        actor=person("approver", "lee").as_actor(),
        now=db_now(),
    )
    withdrawal = store_withdrawal(order)

    reconcile()

    assert reload(withdrawal).state == "withdrawn"


def test_a_withdrawal_without_the_right_has_no_effect():
    order = store()
    lee = person("operator", "lee")
    withdrawal = store_withdrawal(order, by_type="user", by_name="lee", by_id=lee.pk)

    reconcile()

    withdrawal = reload(withdrawal)
    assert (withdrawal.state, withdrawal.blocks_until) == ("refused", None)
    assert withdrawal.closed_at is not None
    assert reload(order).state == "reconciled"
    assert Episode.objects.get().ended_at is None


def test_a_withdrawal_ends_the_block_of_a_refused_order_at_once():
    order = store_by(person("operator", "lee"))
    reconcile()
    assert reload(order).closed_at is None
    withdrawal = store_withdrawal(order)

    reconcile()

    order, withdrawal = reload(order), reload(withdrawal)
    assert (order.state, withdrawal.state) == ("refused", "withdrawn")
    assert order.closed_version == withdrawal.closed_version == Publication.objects.get().version


def test_a_refused_order_that_is_withdrawn_already_is_closed_at_once():
    order = store_by(person("operator", "lee"))
    store_withdrawal(order)

    reconcile()

    order = reload(order)
    assert (order.state, order.blocks_until) == ("refused", None)
    assert order.closed_at is not None


def test_somebody_else_may_withdraw():
    order = store()
    lee = person_with_code("lee")
    store_withdrawal(order, by_type="user", by_name="lee", by_id=lee.pk)

    reconcile()

    assert not Episode.objects.exists()


def test_a_withdrawal_of_another_order_with_the_same_id_withdraws_that_one_alone():
    mail = store("feature:mail", id=UUID(PK))
    chat = store("feature:chat", id=uuid5(UUID(PK), "feature:chat"))
    withdrawal = store(
        "feature:chat", action="withdraw", order_id=PK, expires_in=None, reason="the wrong switch"
    )

    reconcile()
    reconcile()

    assert reload(mail).state == "reconciled"
    assert (reload(chat).state, reload(withdrawal).state) == ("withdrawn", "withdrawn")
    assert Episode.objects.get().switch_id == "feature:mail"


def test_withdrawals_dated_before_their_orders_hold_up_nothing(monkeypatch):
    monkeypatch.setattr(reconciliation, "MAX_AT_ONCE", 2)
    orders = [store(f"feature:f{number}") for number in range(3)]
    for order in orders:
        store_withdrawal(order, at=order.at - timedelta(hours=1))

    done = [reconcile() for _ in range(3)]

    assert done == [2, 2, 2]
    assert not EmergencyOrder.objects.filter(closed_at=None).exists()


RELAY, OTHER_RELAY = (str(SigningKey(bytes([number] * 32)).public) for number in (1, 2))


@pytest.mark.parametrize(("relay", "by"), [(RELAY, RELAY), (RELAY, ""), ("", "")])
def test_a_withdrawal_by_the_relay_that_accepted_the_order_or_by_a_data_plane_counts(relay, by):
    order = store(relay=relay)
    store_withdrawal(order, relay=by)

    reconcile()

    assert reload(order).state == "withdrawn"
    assert not Episode.objects.exists()


@pytest.mark.parametrize("relay", ["", OTHER_RELAY])
def test_a_withdrawal_by_a_relay_of_an_order_of_others_is_refused(settings, relay):
    messages.configure(settings)
    order = store(relay=relay)
    withdrawal = store_withdrawal(order, relay=RELAY)

    reconcile()

    assert reload(order).state == "reconciled"
    assert Episode.objects.get().state == "engaged"
    assert reload(withdrawal).state == "refused"
    (message,) = messages.find("emergency_order.refused")
    assert "A relay can withdraw only orders that were given to it" in message.payload["said"]


def test_a_withdrawal_by_another_relay_does_not_end_the_block_of_a_refused_order():
    before_the_code = db_now() - timedelta(days=2)
    order = store(at=before_the_code, relay=OTHER_RELAY)
    store_withdrawal(order, relay=RELAY)

    reconcile()

    order = reload(order)
    assert (order.state, order.closed_at) == ("refused", None)
    assert order.blocks_until > db_now()
