"""Retention of trip requests."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

TRIP_REQUESTS = RetentionRule(
    name="trip-requests",
    model="core.TripRequest",
    period=timedelta(days=35),
    where="decided_at IS NOT NULL AND requested_at < %(before)s",
    since="requested_at",
    bounds=(8, 400),
    tick="trip_requests.purge",
    why="What apps of the house asked machines to stop, and was answered; one is asked once.",
    exempt="What is not decided.",
)

RETENTION_RULES.register(TRIP_REQUESTS)
