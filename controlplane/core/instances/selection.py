"""The versions applied by chosen instances, and their delays, by instance or service name."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from .queries import HEARD_WITHIN, Head

_THERE = """
    SELECT id FROM core_instance
    WHERE heard_at >= %(there)s AND (id = ANY(%(names)s) OR service = ANY(%(services)s))
    ORDER BY id
"""
_SAID = """
    SELECT i.id,
           CASE WHEN i.applied_epoch = %(epoch)s AND i.applied_version <= %(newest)s
                THEN i.applied_version ELSE -1 END AS applied,
           CASE WHEN i.first_heard_at < %(since)s THEN
               greatest(0, round(extract(epoch FROM first.at - %(since)s) * 1000))::bigint
           END
    FROM core_instance i LEFT JOIN (
        SELECT instance, min(acknowledged_at) AS at FROM core_acknowledgement
        WHERE epoch = %(epoch)s AND version >= %(version)s AND version <= %(newest)s
          AND acknowledged_at >= %(since)s - interval '5 seconds'
        GROUP BY instance
    ) first ON first.instance = i.id
    WHERE i.heard_at >= %(there)s AND (i.id = ANY(%(names)s) OR i.service = ANY(%(services)s))
    ORDER BY applied, i.id
"""


@dataclass(frozen=True)
class Said:
    """An instance, the version it applies (-1: none of this epoch), and its delay after the change.

    `after_ms` is None if it didn't acknowledge the change, or wasn't running at the time.
    """

    id: str
    applied: int
    after_ms: int | None


def there(names: Collection[str], services: Collection[str], now: datetime) -> list[str]:
    """Return the chosen instances heard from within 30 s, sorted by id."""
    wanted: dict[str, Any] = {
        "names": list(names),
        "services": list(services),
        "there": now - HEARD_WITHIN,
    }
    with connection.cursor() as cursor:
        cursor.execute(_THERE, wanted)
        return [row[0] for row in cursor.fetchall()]


def said(
    names: Collection[str],
    services: Collection[str],
    *,
    version: int,
    since: datetime,
    head: Head,
) -> list[Said]:
    """Return the reports of the chosen instances, those furthest behind first.

    Includes instances heard from within 30 s before `since` or after it, and so also one that fell
    silent when it should have applied the change. `version` was committed at `since`. An
    acknowledgement up to 5 s before that, by clock error, is a delay of 0.
    """
    asked: dict[str, Any] = {
        "names": list(names),
        "services": list(services),
        "version": version,
        "since": since,
        "epoch": head.epoch,
        "newest": head.version,
        "there": since - HEARD_WITHIN,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SAID, asked)
        return [Said(*row) for row in cursor.fetchall()]


def nearest_rank(values: Sequence[int], share: float) -> int | None:
    """A percentile that is one of the values, `share` of 1; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
