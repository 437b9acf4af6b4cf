"""Filters of deliveries, shared by the page and the API."""

from collections.abc import Mapping

from django.db.models import Count, Q, QuerySet

from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.targets import destination_names
from controlplane.notify.transports.base import TRANSPORTS

GIVEN_UP = Q(state="failed", discarded_at__isnull=True)
"""Filter for failed messages that are not discarded."""


def filter_messages(
    rows: QuerySet[OutboxMessage], filters: Mapping[str, str]
) -> QuerySet[OutboxMessage]:
    """Return the messages that match all given filters: state, severity, event, destination.

    An event without a dot matches all events of that family. A destination is a kind (`email`), a
    whole destination (`webhook:7`), or the name of a target.
    """
    for field in ("state", "severity"):
        if filters.get(field):
            rows = rows.filter(**{field: filters[field]})
    if event := filters.get("event"):
        whole, family = Q(event=event), Q(event__startswith=f"{event}.")
        rows = rows.filter(whole if "." in event else family)
    if destination := filters.get("destination"):
        if ":" in destination:
            matching = Q(destination=destination)
        elif destination in TRANSPORTS:
            matching = Q(destination=destination) | Q(destination__startswith=f"{destination}:")
        else:
            matching = Q(destination__in=destination_names.find_destinations(destination))
        rows = rows.filter(matching)
    return rows


def count_messages() -> dict[str, int]:
    return OutboxMessage.objects.exclude(state="sent").aggregate(
        pending=Count("pk", filter=Q(state="pending")),
        failed=Count("pk", filter=GIVEN_UP),
        superseded=Count("pk", filter=Q(state="superseded")),
    )
