"""API resources of switches, built from column values instead of model instances.

Creating a model instance per row would take longer than the rest of a list request.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import FilteredRelation, Q

from controlplane.core.canonical import timestamp_or_none
from controlplane.core.http.json_format import format_moment
from controlplane.core.instances import queries
from switches.effect import NOT_MEASURED, FleetReports, measure_fleet
from switches.models import Switch, SwitchQuerySet, SwitchState
from switches.snapshot import render_percent

FormatTime = Callable[[datetime | None], Any]


class ListedSwitch(NamedTuple):
    """A switch with the fields of its open episode and live ramp.

    The defaults describe a switch that was never registered.
    """

    pk: str
    scope: str
    key: str
    version: int = 0
    owner: str = ""
    description: str = ""
    runbook_url: str = ""
    last_proven_at: datetime | None = None
    requested_at: datetime | None = None
    committed_at: datetime | None = None
    allow_percent: Decimal | None = None
    reason: str | None = None
    engaged_by: str | None = None
    engaged_at: datetime | None = None
    expires_at: datetime | None = None
    on_expiry: str | None = None
    permanent: bool | None = None
    overdue_at: datetime | None = None
    ramp: int | None = None


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


def read_resource(switch_id: str) -> dict[str, Any]:
    """Return the API resource of one switch; an unknown switch is shown as released."""
    if found := read_resources([switch_id]):
        return found[switch_id]
    scope, _, key = switch_id.partition(":")
    return _build_resource(ListedSwitch(switch_id, scope, key), None, timestamp_or_none)


def read_resources(switch_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the API resources of the registered switches among these ids, by id."""
    rows = with_episode_and_ramp().filter(pk__in=switch_ids).order_by("pk").values_list(*COLUMNS)
    return {found["id"]: found for found in serialize_rows(list(rows), timestamp_or_none)}


def serialize_rows(
    rows: Sequence[tuple[Any, ...]], format_time: FormatTime = format_moment
) -> list[dict[str, Any]]:
    """Return the API resources of switches, given rows with the values of :data:`COLUMNS`."""
    switches = [*map(ListedSwitch._make, rows)]
    published = [switch for switch in switches if switch.version]
    fleet = measure_fleet(published, *queries.count_versions_at_head()) if published else None
    return [_build_resource(switch, fleet, format_time) for switch in switches]


def _build_resource(
    switch: ListedSwitch, fleet: FleetReports | None, format_time: FormatTime
) -> dict[str, Any]:
    percent, state = switch.allow_percent, SwitchState.RELEASED
    if percent is not None:
        state = SwitchState.RAMPING if percent else SwitchState.ENGAGED
    return {
        "id": switch.pk,
        "scope": switch.scope,
        "key": switch.key,
        "state": state.value,
        "allow_percent": 100 if percent is None else render_percent(percent),
        "reason": switch.reason,
        "engaged_by": switch.engaged_by,
        "engaged_at": format_time(switch.engaged_at),
        "expires_at": format_time(switch.expires_at),
        "on_expiry": switch.on_expiry,
        "permanent": bool(switch.permanent),
        "overdue": switch.overdue_at is not None,
        "version": switch.version,
        "owner": switch.owner,
        "description": switch.description,
        "runbook_url": switch.runbook_url,
        "last_proven_at": format_time(switch.last_proven_at),
        "ramp": switch.ramp,
        "effect": _build_effect(switch, fleet, format_time) if fleet and switch.version else None,
    }


def _build_effect(
    switch: ListedSwitch, fleet: FleetReports, format_time: FormatTime
) -> dict[str, Any]:
    behind = fleet.present.below(switch.version)
    delays = fleet.delays.get(switch.pk, NOT_MEASURED)
    return {
        "version": switch.version,
        "applied": fleet.present.total - behind,
        "instances": fleet.present.total,
        "stragglers": [straggler.id for straggler in fleet.lagging[:behind]],
        "stragglers_total": behind,
        "silent_total": fleet.silent.below(switch.version),
        "measured": delays.measured,
        "p50_ms": delays.p50_ms,
        "p99_ms": delays.p99_ms,
        "requested_at": format_time(switch.requested_at),
        "committed_at": format_time(switch.committed_at),
    }
