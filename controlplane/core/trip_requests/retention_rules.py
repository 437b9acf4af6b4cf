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
    why="Decided requests to trip a switch, so that each is made only once.",
    exempt="Pending requests.",
)

RETENTION_RULES.register(TRIP_REQUESTS)
