"""Emergency orders without the right to give them, and malformed ones."""

import json
from datetime import timedelta

import pytest

from controlplane.accounts.emergency_codes.services import revoke_code
from controlplane.accounts.models import EmergencyCode
from controlplane.accounts.people import services as people
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.emergency.reconciliation import REFUSED_BLOCKS_FOR
from switches.models import Episode, Publication, Switch
from switches.tests import messages

from .orders import person_with_code, reconcile, reload, store, store_by

pytestmark = pytest.mark.django_db
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ADMIN = system_actor("test")


def refusal_of(order):
    reconcile()
    order = reload(order)
    assert order.state == "refused"
    assert not Episode.objects.exists()
    return order.refusal


def by_token(token, **fields):
    return store(by_type="token", by_name=token.name, by_id=token.pk, **fields)


def change(user, at, **fields):
    people.change_user(user=user, actor=ADMIN, now=at, **fields)


class TestPeople:
    def test_without_a_code(self):
        order = store_by(person("operator", "lee"))

        assert refusal_of(order) == "lee had no emergency code at the time of the order."

    def test_with_a_code_revoked_before(self):
        kim = person_with_code()
        revoke_code(user=kim, actor=ADMIN, now=db_now() - HOUR)

        assert "The emergency code of kim was revoked on " in refusal_of(store())

    def test_with_a_code_created_after(self):
        kim = person_with_code(since=MINUTE)

        assert "no emergency code" in refusal_of(store_by(kim, at=db_now() - HOUR))

    def test_a_code_revoked_after_the_order_is_enough(self):
        kim = person_with_code()
        order = store_by(kim, at=db_now() - HOUR)
        revoke_code(user=kim, actor=ADMIN, now=db_now())

        reconcile()

        assert reload(order).state == "reconciled"

    def test_a_person_deactivated_after_the_order_had_the_right(self):
        kim = person_with_code()
        order = store_by(kim, at=db_now() - HOUR)
        change(kim, db_now(), is_active=False)

        reconcile()

        assert reload(order).state == "reconciled"
        assert AuditEntry.objects.get(action="switch.engaged").actor_name == "kim"

    def test_of_whom_nobody_knows(self):
        order = store(by_type="user", by_name="kim", by_id=4711)

        assert refusal_of(order) == "There is no person kim with the id 4711."

    def test_a_name_of_somebody_else_as_after_a_restored_backup(self):
        order = store(by_type="user", by_name="kim", by_id=person_with_code("lee").pk)

        assert "no person kim" in refusal_of(order)

    def test_the_code_counts_as_used(self):
        order = store()

        reconcile()

        assert EmergencyCode.objects.get().last_used_at == order.at


class TestTokens:
    def test_revoked_before(self, token):
        tokens.revoke_token(token=token, actor=ADMIN, now=db_now() - HOUR)

        assert "The token ci was revoked on " in refusal_of(by_token(token))

    def test_revoked_after_the_order_had_the_right(self, token):
        order = by_token(token)
        tokens.revoke_token(token=token, actor=ADMIN, now=db_now())

        reconcile()

        assert reload(order).state == "reconciled"

    def test_expired_before(self, token):
        token.expires_at = db_now() - HOUR
        token.save()

        assert "The token ci expired on " in refusal_of(by_token(token))

    def test_without_the_scope(self, token):
        token.scopes = ["switches:write"]
        token.save()

        assert "does not have the scope switches:emergency" in refusal_of(by_token(token))

    def test_of_an_owner_who_was_a_viewer(self, token):
        change(token.owner, db_now() - HOUR, role="viewer")

        assert "olga had the role viewer at the time" in refusal_of(by_token(token))

    def test_of_an_owner_who_was_deactivated(self, token):
        change(token.owner, db_now() - HOUR, is_active=False)

        assert refusal_of(by_token(token)) == (
            "The account of olga was deactivated before the order."
        )

    @pytest.mark.parametrize("fields", [{"role": "viewer"}, {"is_active": False}])
    def test_of_an_owner_who_lost_it_after_the_order(self, token, fields):
        order = by_token(token)
        change(token.owner, db_now(), **fields)
        change(token.owner, db_now(), display_name="Olga")

        reconcile()

        assert reload(order).state == "reconciled"

    def test_of_which_nobody_knows(self):
        order = store(by_type="token", by_name="ci", by_id=4711)

        assert refusal_of(order) == "There is no token ci with the id 4711."


class TestMalformed:
    @pytest.mark.parametrize(
        "fields",
        [
            {"switch": "galaxy:x"},
            {"switch": "segment:has blank"},
            {"switch": ""},
            {"reason": ""},
            {"expires_in": "soon"},
            {"expires_in": "400d"},
            {"at": "9999-12-31T23:59:59Z"},
            {"expires_in": None},
            {"plane": ""},
            {"by_type": "robot", "by_name": "x", "by_id": 1},
            {"action": "withdraw", "order_id": None, "expires_in": None},
            {"action": "engage", "order_id": "6f1c7ec5-2a0e-4c8e-9f0b-0d5e5b7c9a11"},
        ],
        ids=str,
    )
    def test_is_refused_and_others_are_reconciled(self, fields):
        order = store(**{"at": db_now() - HOUR, **fields})
        fine = store("feature:fine")

        reconcile()

        assert reload(order).state == "refused"
        assert "not a valid order" in reload(order).refusal
        assert reload(fine).state == "reconciled"
        assert Switch.objects.get().pk == "feature:fine"

    def test_an_order_of_last_year_is_refused(self):
        person_with_code(since=500 * DAY)

        assert refusal_of(store(at=db_now() - 401 * DAY)) == "It is more than 400 days old."


class TestBlock:
    def test_a_refusal_is_loud_and_the_order_stays_open_for_ten_minutes(self, settings):
        messages.configure(settings)
        order = store_by(person("operator", "lee"))
        now = db_now()

        reconcile(now)

        order = reload(order)
        assert (order.blocks_until, order.closed_at) == (now + REFUSED_BLOCKS_FOR, None)
        (message,) = messages.find("emergency_order.refused")
        assert message.severity == "critical"
        assert message.payload["said"] == order.refusal
        assert "engage it now" in message.payload["to_do"]
        entry = AuditEntry.objects.order_by("id").last()
        assert (entry.action, entry.target) == ("emergency_order.refused", "segment:finance")
        assert (entry.actor_type, entry.actor_name) == ("system", "emergency")
        assert json.loads(entry.after)["emergency"]["by"] == "user:lee"
        assert reconcile(now + 9 * MINUTE) == 0

    def test_then_the_order_is_closed(self, settings):
        messages.configure(settings)
        order = store_by(person("operator", "lee"))
        now = db_now()
        reconcile(now)
        before = Publication.objects.get().version

        assert reconcile(now + REFUSED_BLOCKS_FOR) == 1

        order = reload(order)
        assert order.state == "refused"
        assert order.closed_version == Publication.objects.get().version == before + 1
        (message,) = messages.find("emergency_order.ended")
        assert "released" in message.payload["said"]
        assert reconcile(now + HOUR) == 0

    def test_the_end_says_that_somebody_engaged_it_meanwhile(self, settings):
        messages.configure(settings)
        now = db_now()
        store_by(person("operator", "lee"))
        reconcile(now)
        store()
        reconcile(now)

        reconcile(now + REFUSED_BLOCKS_FOR)

        (message,) = messages.find("emergency_order.ended")
        assert message.payload["said"] == "The switch was engaged by other means."
