"""Queries of the fleet: the last reports of all processes, the published version, and instances."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from django.db.models import Count

from controlplane.core.fleet import statuses
from controlplane.core.fleet.models import DataPlane
from controlplane.core.fleet.retention_rules import DATA_PLANES
from controlplane.core.fleet.statuses import FleetMember, ProcessReport, PublishedHead
from controlplane.core.instances.models import Instance
from controlplane.core.registered_sql import PUBLISHED_HEAD
from controlplane.core.sql import fetch_all

INSTANCES_WITHIN = timedelta(days=1)
_COLUMNS = tuple(field.name for field in fields(ProcessReport))


@dataclass(frozen=True)
class Fleet:
    """All data planes and relays, most urgent first, and the version that the console published."""

    members: tuple[FleetMember, ...]
    head: PublishedHead


def load_fleet(now: datetime) -> Fleet:
    """Return the fleet, without processes that stopped cleanly or are silent for long."""
    since = now - DATA_PLANES.effective_period
    rows = DataPlane.objects.filter(is_stopped=False, heard_at__gte=since)
    # The head is read last, so that no report is ahead of it.
    reports = [ProcessReport(*row) for row in rows.values_list(*_COLUMNS)]
    statement = f"SELECT epoch, version, published_at FROM ({PUBLISHED_HEAD.get()}) head"  # noqa: S608
    head = PublishedHead(*fetch_all(statement)[0])
    return Fleet(tuple(statuses.assess_fleet(reports, head, now)), head)


def count_instances_by_relay(includes: Callable[[str], bool], now: datetime) -> dict[str, int]:
    """Return the numbers of instances last heard through each relay in the last day.

    Only instances of services that `includes` selects (`service:core`) count.
    """
    rows = Instance.objects.filter(heard_at__gte=now - INSTANCES_WITHIN).exclude(relay="")
    counts: Counter[str] = Counter()
    grouped = rows.order_by().values_list("service", "relay").annotate(count=Count("pk"))
    for service, relay, count in grouped:
        if includes(f"service:{service}"):
            counts[relay] += count
    return counts


def select_route(members: Sequence[FleetMember], relays: Collection[str]) -> list[FleetMember]:
    """Return all data planes, and these relays with the relays that they follow."""
    upstreams = {member.name: member.upstreams for member in members}
    names, found = set[str](), list(relays)
    while found:
        name = found.pop()
        if name not in names:
            names.add(name)
            found += upstreams.get(name, ())
    return [member for member in members if not member.is_relay or member.name in names]
