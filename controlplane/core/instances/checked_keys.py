"""Checked keys: the switches that services check, how often, by which services, and when last.

Hourly counts find the keys and order them by traffic; the entries of instances tell the rest.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Case,
    Expression,
    ExpressionWrapper,
    F,
    FloatField,
    Func,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast

from controlplane.core.freshness import Freshness, assess_freshness
from controlplane.core.sql import fetch_all

from . import rates
from .check_series import HOUR_SECONDS
from .exports import TOKEN_PREFIX
from .models import CheckCount

CHECKED_WITHIN = timedelta(hours=1)
"""Time after its last check for which a key counts as checked."""
RATE_PERIOD = timedelta(seconds=rates.MINUTE_SECONDS)
"""Period over which rates are measured, so a rate is current while a check is as recent."""
MAX_WORDS = 6

# The counts of several instances with the same minute are added up like those of one.
_CHECKS = """
    SELECT entry.key, CASE WHEN starts_with(i.id, %(token)s) THEN '' ELSE i.service END,
           (entry.value ->> 'minute')::bigint, count(*),
           sum((entry.value ->> 'now')::bigint)::bigint,
           sum((entry.value ->> 'before')::bigint)::bigint, max(entry.value ->> 'seen' COLLATE "C")
    FROM core_instance i, jsonb_each(i.checks) AS entry
    WHERE i.checks ?| %(switches)s AND entry.key = ANY(%(switches)s)
    GROUP BY 1, 2, 3
"""


@dataclass(frozen=True)
class CallingService:
    """A service that checks a switch, with totals over its instances.

    In a :class:`CheckedKey`, the id is empty for the callers without a service: API tokens.
    """

    id: str
    instances: int
    calls_per_second: float
    last_seen: datetime


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
    def calls_per_second(self) -> float:
        return sum(service.calls_per_second for service in self.services)


def rank_keys(now: datetime, text: str = "") -> QuerySet[CheckCount, Any]:
    """Return rows of `switch` and `calls`, the checks in the last 60 minutes, busiest first.

    Lists ids that contain every word of `text`, in any case. The hour before this one counts in
    proportion to its overlap with these 60 minutes, as if its checks were evenly spread.
    """
    hours, passed = divmod(now.timestamp(), HOUR_SECONDS)
    this_hour = int(hours) * HOUR_SECONDS
    rows = CheckCount.objects.filter(
        seconds=HOUR_SECONDS, start__in=(this_hour, this_hour - HOUR_SECONDS)
    )
    for word in text.split()[:MAX_WORDS]:
        rows = rows.filter(switch__icontains=word)
    share = Case(
        When(start=this_hour, then=Value(1.0)),
        default=Value(1 - passed / HOUR_SECONDS),
        output_field=FloatField(),
    )
    calls = Sum(Cast(F("allowed") + F("blocked"), FloatField()) * share)
    return rows.values("switch").annotate(calls=calls).order_by("-calls", "switch")


def traffic_of(field: str, now: datetime) -> Expression:
    """Return an expression for the checks in the last hour of the switch whose id is in `field`.

    It is null for switches without checks. All counts are read once per statement, so it may order
    thousands of switches.
    """
    ranked, parameters = rank_keys(now).order_by().query.sql_with_params()
    counts = RawSQL(f"(SELECT jsonb_object_agg(switch, calls) FROM ({ranked}) ranked)", parameters)  # noqa: S608, S611
    found = Func(counts, F(field), template="(%(expressions)s)::float", arg_joiner=" -> ")
    return ExpressionWrapper(found, output_field=FloatField())


def load_checked_keys(switches: Iterable[str], now: datetime) -> dict[str, CheckedKey]:
    """Return the checks of each switch by its id; one query."""
    ids = list(switches)
    parameters = {"switches": ids, "token": TOKEN_PREFIX}
    services: dict[str, dict[str, list[CallingService]]] = defaultdict(lambda: defaultdict(list))
    for switch, service, minute, instances, last, before, seen in (
        fetch_all(_CHECKS, parameters) if ids else ()
    ):
        entry: rates.Entry = {"minute": minute, "now": last, "before": before, "seen": seen}
        rate = rates.per_second(entry, now)
        row = CallingService(service, instances, rate, rates.last_seen(entry))
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
        )
        for service, rows in found.items()
        if (recent := [row for row in rows if row.last_seen >= now - CHECKED_WITHIN])
    ]
    services.sort(key=lambda service: (-service.calls_per_second, service.id))
    return CheckedKey(switch, tuple(services), assess_freshness(last_seen, RATE_PERIOD, now))
