"""Fast list of switches for the API, built from column values instead of model instances.

The result equals :func:`switches.resources.switch_resource`. A model instance per row would take
longer than the rest of the request.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import FilteredRelation, Q

from controlplane.core.http.json_format import format_moment
from switches.effect import NOT_MEASURED, FleetReports, measure_fleet, read_fleet
from switches.models import Switch, SwitchQuerySet, SwitchState
from switches.resources import FULLY_ALLOWED, plain


class ListedSwitch(NamedTuple):
    """A switch with the fields of its open episode and live ramp, or None for each."""

    pk: str
    scope: str
    key: str
    version: int
    owner: str
    description: str
    runbook_url: str
    last_proven_at: datetime | None
    requested_at: datetime | None
    committed_at: datetime | None
    allow_percent: Decimal | None
    reason: str | None
    engaged_by: str | None
    engaged_at: datetime | None
    expires_at: datetime | None
    on_expiry: str | None
    permanent: bool | None
    overdue_at: datetime | None
    ramp: int | None


COLUMNS = (
    "id", "scope", "key", "version", "owner", "description", "runbook_url", "last_proven_at",
    "requested_at", "committed_at", "open__allow_percent", "open__reason",
    "open__engaged_by_name", "open__engaged_at", "open__expires_at", "open__on_expiry",
    "open__permanent", "open__overdue_at", "live__job_id",
)  # fmt: skip
"""The columns of :class:`ListedSwitch`, in field order."""


def with_episode_and_ramp() -> SwitchQuerySet:
    return Switch.objects.annotate(
        open=FilteredRelation("episodes", condition=Q(episodes__ended_at__isnull=True)),
        live=FilteredRelation("ramps", condition=Q(ramps__live=True)),
    )


def serialize_rows(rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return the resources of a page of switches from rows of :data:`COLUMNS`."""
    switches = [*map(ListedSwitch._make, rows)]
    published = [switch for switch in switches if switch.version]
    fleet = measure_fleet(published, read_fleet()) if published else None
    return [_build_resource(switch, fleet) for switch in switches]


def _build_resource(switch: ListedSwitch, fleet: FleetReports | None) -> dict[str, Any]:
    percent = switch.allow_percent
    return {
        "id": switch.pk,
        "scope": switch.scope,
        "key": switch.key,
        "state": _get_state(percent),
        "allow_percent": FULLY_ALLOWED if percent is None else plain(percent),
        "reason": switch.reason,
        "engaged_by": switch.engaged_by,
        "engaged_at": format_moment(switch.engaged_at),
        "expires_at": format_moment(switch.expires_at),
        "on_expiry": switch.on_expiry,
        "permanent": bool(switch.permanent),
        "overdue": switch.overdue_at is not None,
        "version": switch.version,
        "owner": switch.owner,
        "description": switch.description,
        "runbook_url": switch.runbook_url,
        "last_proven_at": format_moment(switch.last_proven_at),
        "ramp": switch.ramp,
        "effect": _build_effect(switch, fleet) if fleet and switch.version else None,
    }


def _build_effect(switch: ListedSwitch, fleet: FleetReports) -> dict[str, Any]:
    behind = fleet.present.below(switch.version)
    delays = fleet.delays.get(switch.pk, NOT_MEASURED)
    return {
        "version": switch.version,
        "applied": fleet.present.total - behind,
        "instances": fleet.present.total,
        "stragglers": [one.id for one in fleet.lagging[:behind]],
        "stragglers_total": behind,
        "silent_total": fleet.silent.below(switch.version),
        "measured": delays.measured,
        "p50_ms": delays.p50_ms,
        "p99_ms": delays.p99_ms,
        "requested_at": format_moment(switch.requested_at),
        "committed_at": format_moment(switch.committed_at),
    }


def _get_state(percent: Decimal | None) -> str:
    if percent is None:
        return SwitchState.RELEASED.value
    return SwitchState.RAMPING.value if percent else SwitchState.ENGAGED.value
