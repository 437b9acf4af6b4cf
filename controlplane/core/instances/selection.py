"""Applied versions and delays of instances selected by instance or service name."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.core.sql import fetch_all

from .queries import HEARD_WITHIN, Head

_LIVE = """
    SELECT id FROM core_instance
    WHERE heard_at >= %(there)s AND (id = ANY(%(names)s) OR service = ANY(%(services)s))
    ORDER BY id
"""
_STATUSES = """
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
class ChangeStatus:
    """An instance's state after a change.

    `applied` is the applied version, or -1 if that is not of this epoch. `after_ms` is the delay
    from the commit to the acknowledgement; None if the instance didn't acknowledge the change or
    wasn't running at the time.
    """

    id: str
    applied: int
    after_ms: int | None


def list_live_instances(
    names: Collection[str], services: Collection[str], now: datetime
) -> list[str]:
    """Return the ids of the selected instances heard from within 30 s, sorted."""
    parameters = {"names": list(names), "services": list(services), "there": now - HEARD_WITHIN}
    return [id for (id,) in fetch_all(_LIVE, parameters)]


def load_statuses(
    names: Collection[str],
    services: Collection[str],
    *,
    version: int,
    since: datetime,
    head: Head,
) -> list[ChangeStatus]:
    """Return the status of each selected instance after a change, furthest behind first.

    The change `version` was committed at `since`. Instances heard from at most 30 s before `since`
    are included, and so are those that then fell silent instead of applying the change. An
    acknowledgement up to 5 s before `since`, by clock error, is a delay of 0.
    """
    parameters: dict[str, Any] = {
        "names": list(names),
        "services": list(services),
        "version": version,
        "since": since,
        "epoch": head.epoch,
        "newest": head.version,
        "there": since - HEARD_WITHIN,
    }
    return [ChangeStatus(*row) for row in fetch_all(_STATUSES, parameters)]


def nearest_rank(values: Sequence[int], share: float) -> int | None:
    """Return the percentile by nearest rank, for a `share` from 0 to 1; None without values."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
