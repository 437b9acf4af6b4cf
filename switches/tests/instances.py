"""Reports of instances, written as the data plane would."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from controlplane.core.instances import rates
from controlplane.core.instances.check_series import HOUR_SECONDS
from controlplane.core.instances.checked_keys import ranking_cache
from controlplane.core.instances.models import Acknowledgement, CheckCount, Instance
from switches.models import Publication, Switch

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def report_version(
    name: str,
    version: int | None,
    at: datetime,
    *,
    epoch: UUID | None = None,
    known_since: datetime = LONG_AGO,
    stopped: bool = False,
) -> None:
    """Report the instance at that time, applying `version`."""
    head = Publication.objects.get()
    Instance.objects.update_or_create(
        id=name,
        defaults={
            "service": name.partition("/")[0],
            "heard_at": at,
            "stopped_at": at if stopped else None,
            "first_heard_at": known_since,
            "applied_epoch": None if version is None else epoch or head.epoch,
            "applied_version": version,
        },
    )


def report_acknowledgment(name: str, switch: Switch, after_ms: int) -> None:
    """Report the instance's first acknowledgment of the switch's last change."""
    assert switch.committed_at is not None
    Acknowledgement.objects.create(
        epoch=Publication.objects.get().epoch,
        version=switch.version,
        instance=name,
        acknowledged_at=switch.committed_at + timedelta(milliseconds=after_ms),
    )


def report_checks(
    name: str, *switches: str, at: datetime, per_second: int = 0, blocked: int = 0
) -> Instance:
    """Report even checks of these switches for the two minutes before that time.

    `blocked` is how many of its calls were blocked in each minute.
    """
    for switch in switches:
        count_checks(switch, 120 * per_second, at)
    allowed = per_second * 60 - blocked
    entry = rates.add_calls(None, 2 * allowed, 2 * blocked, at, since=at - timedelta(minutes=2))
    found: dict[str, Any] = dict.fromkeys(switches, entry)
    instance, _ = Instance.objects.update_or_create(
        id=name, defaults={"service": name.partition("/")[0], "checks": found}
    )
    return instance


def count_checks(switch: str, calls: int, at: datetime) -> None:
    """Add calls to the count of the switch's checks in the hour of that time."""
    start = int(at.timestamp()) // HOUR_SECONDS * HOUR_SECONDS
    count, _ = CheckCount.objects.get_or_create(switch=switch, seconds=HOUR_SECONDS, start=start)
    count.allowed += calls
    count.save()
    ranking_cache.clear()
