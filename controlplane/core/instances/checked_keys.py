"""Checked keys: the switches that services check, how often, by which services, and when last.

Hourly counts find the keys and order them by traffic; the entries of instances tell the rest.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core.freshness import Freshness, assess_freshness
from controlplane.core.search_words import split_words
from controlplane.core.sql import fetch_all
from controlplane.core.timed_cache import TimedCache

from . import rates
from .check_series import HOUR_SECONDS
from .exports import TOKEN_PREFIX
from .queries import NOT_STOPPED, STOPPED

CHECKED_WITHIN = timedelta(hours=1)
"""Time after its last check for which a key counts as checked."""
RATE_PERIOD = timedelta(seconds=rates.MINUTE_SECONDS)
"""Period over which rates are measured, so a rate is current while a check is as recent."""
RANKING_AGE = timedelta(seconds=5)
"""Greatest age of the ranking of keys."""

# The hour before this one counts in proportion to its overlap with the last 60 minutes, as if its
# checks were evenly spread.
_RANKING = """
    SELECT switch, sum((allowed + blocked)::float8
                       * CASE WHEN start = %(hour)s THEN 1 ELSE %(share)s::float8 END) AS calls
    FROM core_checkcount
    WHERE seconds = %(seconds)s AND start IN (%(hour)s, %(hour)s - %(seconds)s)
    GROUP BY switch ORDER BY calls DESC, switch
"""
# The counts of several instances with the same minute are added up like those of one. Instances
# that stopped cleanly call no more, so theirs are left out.
_CHECKS = f"""
    SELECT entry.key, CASE WHEN starts_with(i.id, %(token)s) THEN '' ELSE i.service END,
           (entry.value ->> 'minute')::bigint, count(*),
           coalesce(sum((entry.value ->> 'now')::bigint) FILTER (WHERE {NOT_STOPPED}), 0)::bigint,
           coalesce(sum((entry.value ->> 'before')::bigint)
                    FILTER (WHERE {NOT_STOPPED}), 0)::bigint,
           max(entry.value ->> 'seen' COLLATE "C"), count(*) FILTER (WHERE {STOPPED})
    FROM core_instance i, jsonb_each(i.checks) AS entry
    WHERE i.checks ?| %(switches)s AND entry.key = ANY(%(switches)s)
    GROUP BY 1, 2, 3
"""  # noqa: S608


@dataclass(frozen=True)
class CallingService:
    """A service that checks a switch, with totals over its instances.

    `stopped` of the `instances` stopped cleanly and have made no contact since. In a
    :class:`CheckedKey`, the id is empty for the callers without a service: API tokens.
    """

    id: str
    instances: int
    calls_per_second: float
    last_seen: datetime
    stopped: int


@dataclass(frozen=True)
class CheckedKey:
    """The services that checked a switch in the last hour, busiest first, and the last check.

    `freshness` is that of the rates, which are of the last minute.
    """

    switch: str
    services: tuple[CallingService, ...]
    freshness: Freshness

    @property
    def is_checked(self) -> bool:
        return bool(self.services)

    @property
    def callers(self) -> int:
        return sum(service.instances for service in self.services)

    @property
    def has_stopped(self) -> bool:
        """True if all callers stopped cleanly."""
        return self.is_checked and all(one.stopped == one.instances for one in self.services)

    @property
    def calls_per_second(self) -> float:
        return sum(service.calls_per_second for service in self.services)


def rank_keys(now: datetime) -> Mapping[str, float]:
    """Return the number of checks in the last 60 minutes by switch, busiest first.

    It was read at most `RANKING_AGE` ago.
    """
    return ranking_cache.get(now)


def find_keys(text: str, now: datetime) -> list[str]:
    """Return the checked switches whose id contains every word of `text`, busiest first."""
    words, keys = split_words(text), rank_keys(now)
    if not words:
        return list(keys)
    return [key for key in keys if all(word in key.casefold() for word in words)]


def load_checked_keys(switches: Iterable[str], now: datetime) -> dict[str, CheckedKey]:
    """Return the checks of each switch by its id; one query."""
    ids = list(switches)
    parameters = {"switches": ids, "token": TOKEN_PREFIX}
    services: dict[str, dict[str, list[CallingService]]] = defaultdict(lambda: defaultdict(list))
    for switch, service, minute, instances, last, before, seen, stopped in (
        fetch_all(_CHECKS, parameters) if ids else ()
    ):
        entry: rates.Entry = {"minute": minute, "now": last, "before": before, "seen": seen}
        rate = rates.per_second(entry, now)
        row = CallingService(service, instances, rate, rates.last_seen(entry), stopped)
        services[switch][service].append(row)
    return {switch: _build_key(switch, services[switch], now) for switch in ids}


def _build_key(switch: str, found: Mapping[str, list[CallingService]], now: datetime) -> CheckedKey:
    last_seen = max((row.last_seen for rows in found.values() for row in rows), default=None)
    services = [
        CallingService(
            id=service,
            instances=sum(row.instances for row in recent),
            calls_per_second=sum(row.calls_per_second for row in recent),
            last_seen=max(row.last_seen for row in recent),
            stopped=sum(row.stopped for row in recent),
        )
        for service, rows in found.items()
        if (recent := [row for row in rows if row.last_seen >= now - CHECKED_WITHIN])
    ]
    services.sort(key=lambda service: (-service.calls_per_second, service.id))
    return CheckedKey(switch, tuple(services), assess_freshness(last_seen, RATE_PERIOD, now))


def _load_ranking(now: datetime) -> Mapping[str, float]:
    hours, passed = divmod(now.timestamp(), HOUR_SECONDS)
    parameters = {
        "hour": int(hours) * HOUR_SECONDS,
        "seconds": HOUR_SECONDS,
        "share": 1 - passed / HOUR_SECONDS,
    }
    return dict(fetch_all(_RANKING, parameters))


ranking_cache = TimedCache(RANKING_AGE, _load_ranking)
