"""Filters of deliveries, shared by the page and the API."""

from collections.abc import Mapping

from django.db.models import Count, Q, QuerySet

from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.targets import naming
from controlplane.notify.transports.base import TRANSPORTS

GIVEN_UP = Q(state="failed", discarded_at__isnull=True)
"""Match failed messages that are not discarded."""


def matching(rows: QuerySet[OutboxMessage], wanted: Mapping[str, str]) -> QuerySet[OutboxMessage]:
    """Return messages that match all filters given: `state`, `severity`, `event`, `destination`.

    An event without a dot matches its family (`switch`); a destination may be a kind (`email`), a
    whole destination (`webhook:7`) or the name of a target.
    """
    for field in ("state", "severity"):
        if wanted.get(field):
            rows = rows.filter(**{field: wanted[field]})
    if event := wanted.get("event"):
        rows = (
            rows.filter(event=event) if "." in event else rows.filter(event__startswith=f"{event}.")
        )
    if destination := wanted.get("destination"):
        rows = rows.filter(_to(destination))
    return rows


def counts() -> dict[str, int]:
    """Count the messages that wait to be sent, were given up, or were superseded."""
    return OutboxMessage.objects.exclude(state="sent").aggregate(
        pending=Count("pk", filter=Q(state="pending")),
        failed=Count("pk", filter=GIVEN_UP),
        superseded=Count("pk", filter=Q(state="superseded")),
    )


def _to(destination: str) -> Q:
    if ":" in destination:
        return Q(destination=destination)
    if destination in TRANSPORTS:
        return Q(destination=destination) | Q(destination__startswith=f"{destination}:")
    return Q(destination__in=naming.named_like(destination))
