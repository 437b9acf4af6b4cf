"""Queries on instances for other apps, which must not read the table themselves."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from controlplane.core.canonical import timestamp
from controlplane.core.freshness import GONE_AFTER, INSTANCE_CADENCE
from controlplane.core.sql import fetch_all

from .queries import NOT_STOPPED, STOPPED, Head

_REQUESTED_SWITCHES = """
    SELECT DISTINCT switch, service FROM (
        SELECT service, checks FROM core_instance
        WHERE service = ANY(%s) AND checks <> '{}' LIMIT 500
    ) requesting, jsonb_object_keys(checks) switch
    LIMIT 1000
"""
_CHECKING_SERVICES = """
    SELECT DISTINCT service FROM core_instance WHERE checks ? %s AND service <> '' LIMIT 200
"""
_CHECKED_TOGETHER = """
    SELECT DISTINCT entry.key FROM core_instance, jsonb_each(checks) AS entry
    WHERE checks -> %(switch)s ->> 'seen' >= %(since)s AND NOT starts_with(id, %(token)s)
      AND entry.value ->> 'seen' >= %(since)s
"""
INSTANCES = "core_instance i"
"""FROM item for SQL of other apps, with the columns `id`, `service`, `boot`, `reported_at`,
`config_version`, `relay` and `resilience`; add `NO_FINAL_REPORT` to omit instances that stopped
cleanly."""
NO_FINAL_REPORT = "i.stopped_at IS NULL"
"""SQL condition: the last report of the instance `i` was not the final one of its process.

A poll after the final report is by the next process; until that reports, the row still has the data
of the stopped one.
"""
PRESENT_BOOT = f"{INSTANCES} ON i.id = s.instance AND i.boot = s.boot"
"""JOIN item for rows `s` of an instance's current boot, the latest run of its process."""
UNSTOPPED_BOOT = f"{PRESENT_BOOT} AND {NO_FINAL_REPORT}"
"""JOIN item like `PRESENT_BOOT`, without instances that stopped cleanly."""
TRIPPED = "(to_state = 'open' AND cause NOT LIKE 'override %%')"
"""SQL condition for breaker transitions that count as trips, because no override forced them.

The percent sign is doubled, for queries with parameters.
"""
TOKEN_PREFIX = "token:"  # noqa: S105 - the id of a caller that sends no instance name.
# Reports include SLOs whose counts no longer change. `tokens` is ordered by their last report.
_COUNTED_SLOS = """
    SELECT counted.slo, (reported #>> '{tokens,-1,0}')::bigint, max(reported_at)
    FROM core_instance
    CROSS JOIN jsonb_object_keys(coalesce(reported -> 'sli', '{}')) AS counted (slo)
    WHERE reported_at > %s
    GROUP BY 1, 2
"""

_REPORTING = f"""
    SELECT id FROM core_instance i
    WHERE heard_at >= %(there)s AND {NOT_STOPPED}
      AND (id = ANY(%(names)s) OR service = ANY(%(services)s))
    ORDER BY id
"""  # noqa: S608
_ALL_REPORTING = f"""
    SELECT id FROM core_instance i
    WHERE heard_at >= %s AND {NOT_STOPPED} AND NOT starts_with(id, %s)
    ORDER BY id LIMIT %s
"""  # noqa: S608
# An instance that was silent for long when the others stopped does not contradict.
_STOPPED_SERVICES = f"""
    SELECT service FROM (
        SELECT service, max(stopped_at) FILTER (WHERE {STOPPED}) AS stopped_at,
               max(heard_at) FILTER (WHERE {NOT_STOPPED}) AS heard_at
        FROM core_instance i WHERE service = ANY(%(services)s) GROUP BY service
    ) found
    WHERE stopped_at < %(before)s
      AND (heard_at IS NULL OR heard_at < stopped_at - %(gone_after)s)
"""  # noqa: S608
_STATUSES = f"""
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
    WHERE i.heard_at >= %(there)s AND {NOT_STOPPED}
      AND (i.id = ANY(%(names)s) OR i.service = ANY(%(services)s))
    ORDER BY applied, i.id
"""  # noqa: S608


class CountedSlo(NamedTuple):
    """An SLO whose events an instance counts; `token` is the API token it reports with, if any."""

    slo: str
    token: int | None
    reported_at: datetime


@dataclass(frozen=True)
class ChangeStatus:
    """The progress of an instance in applying a published change of a switch.

    `applied` is the version that it applies, or -1 if that isn't of the current epoch. `after_ms`
    is the delay from the commit to the acknowledgement; None if the instance didn't acknowledge the
    change or wasn't running at the time.
    """

    id: str
    applied: int
    after_ms: int | None


def load_requested_switches(service: str) -> set[str]:
    """Return the ids of the switches that a service has asked for in checks, at most 1,000."""
    return {switch for switch, _ in load_switch_requests([service])} if service else set()


def load_switch_requests(services: Collection[str]) -> set[tuple[str, str]]:
    """Return pairs of a switch id and a service that has asked for it in checks, at most 1,000."""
    return {(switch, service) for switch, service in fetch_all(_REQUESTED_SWITCHES, [[*services]])}


def load_checking_services(switch_id: str) -> set[str]:
    """Return the services whose instances check a switch, at most 200."""
    return {service for (service,) in fetch_all(_CHECKING_SERVICES, [switch_id])}


def load_switches_checked_together(switch_id: str, since: datetime) -> set[str]:
    """Return the switches checked since `since` by instances that also checked `switch_id`.

    The result includes `switch_id`. Clients that send no instance name are ignored.
    """
    parameters = {"switch": switch_id, "since": timestamp(since), "token": TOKEN_PREFIX}
    return {switch for (switch,) in fetch_all(_CHECKED_TOGETHER, parameters)}


def load_counted_slos(since: datetime) -> list[CountedSlo]:
    """Return the SLOs whose event counts were reported since `since`, once per reporting token."""
    return [CountedSlo(*row) for row in fetch_all(_COUNTED_SLOS, [since])]


def find_stopped_services(services: Collection[str], before: datetime) -> set[str]:
    """Return those of the services whose instances all stopped cleanly, the last before `before`.

    Instances that had been silent for 5 minutes by then are ignored.
    """
    if not services:
        return set()
    parameters = {"services": [*services], "before": before, "gone_after": GONE_AFTER}
    return {service for (service,) in fetch_all(_STOPPED_SERVICES, parameters)}


def list_reporting_instances(
    names: Collection[str], services: Collection[str], now: datetime
) -> list[str]:
    """Return the ids of reporting instances, sorted.

    `names` are instance ids; all instances of `services` are included, too.
    """
    parameters = {"names": list(names), "services": list(services), "there": now - INSTANCE_CADENCE}
    return [id for (id,) in fetch_all(_REPORTING, parameters)]


def list_all_reporting_instances(now: datetime, limit: int) -> list[str]:
    """Return up to `limit` ids of reporting instances with names of their own, sorted."""
    return [
        id for (id,) in fetch_all(_ALL_REPORTING, [now - INSTANCE_CADENCE, TOKEN_PREFIX, limit])
    ]


def load_statuses(
    names: Collection[str],
    services: Collection[str],
    *,
    version: int,
    since: datetime,
    head: Head,
) -> list[ChangeStatus]:
    """Return how far each instance has applied a change of a switch, furthest behind first.

    `names` are instance ids; all instances of `services` are included, too. The change, with the
    version `version`, was committed at `since`. Instances heard from at most 30 s before `since`
    are included, and so are those that then fell silent instead of applying the change, but not
    those that stopped cleanly. An acknowledgement up to 5 s before `since`, by clock error, is a
    delay of 0.
    """
    parameters: dict[str, Any] = {
        "names": list(names),
        "services": list(services),
        "version": version,
        "since": since,
        "epoch": head.epoch,
        "newest": head.version,
        "there": since - INSTANCE_CADENCE,
    }
    return [ChangeStatus(*row) for row in fetch_all(_STATUSES, parameters)]


def nearest_rank(values: Sequence[int], share: float) -> int | None:
    """Return the percentile by nearest rank, for a `share` from 0 to 1; None without values."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
