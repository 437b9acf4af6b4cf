"""Queries on instances for other apps, which do not read the table themselves."""

from datetime import datetime
from typing import NamedTuple

from django.db import connection

_REQUESTED = """
    SELECT DISTINCT switch FROM (
        SELECT checks FROM core_instance WHERE service = %s AND checks <> '{}' LIMIT 500
    ) asking, jsonb_object_keys(checks) switch
    LIMIT 1000
"""
# Instances report all that they ever counted, also while nothing is to be counted. The last of
# `tokens` reported last.
_COUNTED = """
    SELECT counted.slo, (reported #>> '{tokens,-1,0}')::bigint, max(reported_at)
    FROM core_instance
    CROSS JOIN jsonb_object_keys(coalesce(reported -> 'sli', '{}')) AS counted (slo)
    WHERE reported_at > %s
    GROUP BY 1, 2
"""


class CountedSlo(NamedTuple):
    """An SLO that instances count, with the id of the token they reported with last, if any."""

    slo: str
    token: int | None
    reported_at: datetime


def load_requested_switches(service: str) -> set[str]:
    """Return the switches that instances of a service have asked for, at most 1,000."""
    if not service:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(_REQUESTED, [service])
        return {switch for (switch,) in cursor.fetchall()}


def load_counted_slos(since: datetime) -> list[CountedSlo]:
    """Return the SLOs of which instances have reported counts since a moment, by token."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, [since])
        return [CountedSlo(*row) for row in cursor.fetchall()]
