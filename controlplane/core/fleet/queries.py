"""Query of the fleet: the last reports of all processes, and the published version."""

from dataclasses import dataclass, fields
from datetime import datetime

from controlplane.core.fleet import statuses
from controlplane.core.fleet.models import DataPlane
from controlplane.core.fleet.retention_rules import DATA_PLANES
from controlplane.core.fleet.statuses import FleetMember, ProcessReport, PublishedHead
from controlplane.core.registered_sql import PUBLISHED_HEAD
from controlplane.core.sql import fetch_all

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
