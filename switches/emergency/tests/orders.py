"""Emergency orders in tests, as data planes insert them: raw SQL, the order's own columns only."""

import uuid
from datetime import timedelta

from django.db import connection

from controlplane.accounts.emergency_codes.services import create_code
from controlplane.accounts.models import User
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.emergency.reconciliation import reconcile_orders
from switches.models import EmergencyOrder

REASON = "card payments charged twice"
_COLUMNS = (
    "id, action, switch, order_id, reason, expires_in, by_type, by_name, by_id, at, plane, relay"
)


def person_with_code(
    username: str = "kim", role: str = "operator", since=timedelta(days=1)
) -> User:
    user = person(role, username)
    create_code(user=user, actor=user.as_actor(), now=db_now() - since)
    return user


def store(switch="segment:finance", **fields) -> EmergencyOrder:
    """Insert an order by `kim`, given a minute ago on dp-1; `fields` override columns."""
    if "by_id" not in fields:
        kim = User.objects.filter(username="kim").first() or person_with_code()
        fields |= {"by_type": "user", "by_name": kim.username, "by_id": kim.pk}
    row = {
        "id": uuid.uuid4(),
        "action": "engage",
        "switch": switch,
        "order_id": None,
        "reason": REASON,
        "expires_in": "24h",
        "at": db_now() - timedelta(minutes=1),
        "plane": "dp-1",
        "relay": "",
        **fields,
    }
    names = _COLUMNS.split(", ")
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO switches_emergencyorder ({_COLUMNS})"
            f" VALUES ({', '.join(['%s'] * len(names))}) ON CONFLICT DO NOTHING",
            [row[name] for name in names],
        )
    return EmergencyOrder.objects.get(pk=row["id"])


def store_by(user: User, switch="segment:finance", **fields) -> EmergencyOrder:
    return store(switch, by_type="user", by_name=user.username, by_id=user.pk, **fields)


def store_withdrawal(order: EmergencyOrder, **fields) -> EmergencyOrder:
    more = {"at": order.at + timedelta(seconds=20), "reason": "it was the wrong switch", **fields}
    return store(order.switch, action="withdraw", order_id=order.pk, expires_in=None, **more)


def reconcile(now=None) -> int:
    return reconcile_orders(now or db_now())


def reload(order: EmergencyOrder) -> EmergencyOrder:
    return EmergencyOrder.objects.get(pk=order.pk)
