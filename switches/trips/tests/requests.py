"""Requests by machines at a chosen time, and people's reactions."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from controlplane.accounts.models.people import User
from controlplane.core.actors import Actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import person
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.roles import Role
from switches import services as switches
from switches.models import Trip
from switches.trips import resolution, services

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FLAG = "feature:checkout"
MONITOR = Actor(
    type="token", name="monitor", role=Role.OPERATOR, scopes=frozenset({"switches:trip"})
)


def noon_plus(**elapsed: float) -> datetime:
    """Return noon plus these durations."""
    return NOON + timedelta(**elapsed)


def request_stop(now: datetime = NOON, **fields: Any) -> services.TripResult:
    """Request to stop the checkout, as a monitor."""
    wish = {
        "switch": FLAG,
        "source": "latency-monitor",
        "fingerprint": "p95-high",
        "reason": "p95 of checkout above 5 s for ten minutes",
        "evidence": {"p95_seconds": 7.4},
        "expires_in": "1h",
        "actor": MONITOR,
        **fields,
    }
    return services.request_trip(**wish, now=now)


def resolve(now: datetime, switch: str = FLAG, fingerprint: str = "p95-high") -> str:
    return resolution.resolve_alert(switch=switch, fingerprint=fingerprint, actor=MONITOR, now=now)


def kim() -> User:
    return User.objects.filter(username="kim").first() or person("approver", "kim")


def release(now: datetime, switch: str = FLAG) -> None:
    scope, _, key = switch.partition(":")
    switches.release(
        scope=scope,
        key=key,
        justification="provider recovered, error rate 0.2% for 15 min",
        mode="immediate",
        actor=kim().as_actor(),
        now=now,
    )


def engage(now: datetime, switch: str = FLAG, **more: Any) -> None:
    scope, _, key = switch.partition(":")
    fields = {"reason": "payments charged twice, INC-4411", "expires_in": "24h", **more}
    switches.engage(scope=scope, key=key, actor=kim().as_actor(), now=now, **fields)


def list_outcomes() -> list[str]:
    return list(Trip.objects.order_by("id").values_list("outcome", flat=True))


def list_audit_actions(prefix: str = "trip.") -> list[str]:
    entries = AuditEntry.objects.filter(action__startswith=prefix).order_by("id")
    return list(entries.values_list("action", flat=True))


def find_messages(event: str) -> QuerySet[OutboxMessage]:
    return OutboxMessage.objects.filter(event=event)
