"""JSON resources of the registry and of breaker states, for the API and live messages."""

import functools
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson
from django.db.models import FilteredRelation, Q, TextField
from django.db.models.functions import Cast

from breakers import names
from breakers.counts import COUNTERS
from breakers.models import Channel, Dependency, Minute, Override, Service, Transition
from breakers.policies.policy import validate_policy
from breakers.services.overrides import OverrideAcknowledgement, list_acknowledgements
from breakers.states.history import WORST
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.http.json_format import format_moment

from .services import override_endings
from .services.catalog import CHANNELS, SERVICES
from .states.dependency_status import DependencyStatus

if TYPE_CHECKING:
    from breakers.models.registry import DependencyQuerySet

UNREGISTERED = {**validate_policy({}), "managed_by": ""}
"""Policy fields shown for a dependency that is not registered."""


def dependency_resources(rows: Sequence[Dependency], now: datetime) -> list[dict[str, Any]]:
    """Return these dependencies with their overrides, by two queries."""
    live = Override.objects.filter(dependency__in=[row.pk for row in rows], ended_at__isnull=True)
    by_dependency = {one.dependency_id: one for one in live}
    forced = _override_resources([(row, by_dependency.get(row.pk)) for row in rows], now)
    return [dependency_resource(row, said) for row, said in zip(rows, forced, strict=True)]


COLUMNS = (
    "id", "caller", "callee", Cast("document", TextField()), Cast("on_outage", TextField()),
    "version", "registered_at", "changed_at", "removed_at", "forced__id",
)  # fmt: skip
"""Columns that :func:`serialize_rows` reads from :func:`with_override`."""


def with_override() -> "DependencyQuerySet":
    """Return all dependencies, joined with their live override as `forced`."""
    return Dependency.objects.annotate(
        forced=FilteredRelation("overrides", condition=Q(overrides__ended_at__isnull=True))
    )


def serialize_rows(rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return resources as :func:`dependency_resources` does, given rows of `COLUMNS`.

    Queries the database only if a breaker is forced.
    """
    ids = [row[-1] for row in rows if row[-1] is not None]
    live = list(Override.objects.filter(pk__in=ids).select_related("dependency")) if ids else []
    pairs = [(one.dependency, one) for one in live]
    said = _override_resources(pairs, db_now()) if pairs else []
    forced = {one.pk: shown for one, shown in zip(live, said, strict=True)}
    return [_serialize_row(row, forced.get(row[-1])) for row in rows]


def _serialize_row(row: tuple[Any, ...], forced: dict[str, Any] | None) -> dict[str, Any]:
    (
        _id, caller, callee, document, on_outage, version, registered_at, changed_at, removed_at,
        _forced_id,
    ) = row  # fmt: skip
    return {
        "name": names.dependency_name(caller, callee),
        "caller": caller,
        "callee": callee,
        **_parse_policy(document),
        "on_outage": None if on_outage == "{}" else orjson.Fragment(on_outage),
        "version": version,
        "registered": removed_at is None and document != "{}",
        "registered_at": format_moment(registered_at),
        "changed_at": format_moment(changed_at),
        "removed_at": format_moment(removed_at),
        "override": forced,
    }


@functools.lru_cache(maxsize=1024)
def _parse_policy(document: str) -> dict[str, Any]:
    """Parse a policy document into the fields of a resource. Cached: most policies are alike."""
    fields = {**UNREGISTERED, **orjson.loads(document)}
    return {name: orjson.Fragment(orjson.dumps(value)) for name, value in fields.items()}


def dependency_resource(row: Dependency, forced: dict[str, Any] | None) -> dict[str, Any]:
    """Return a dependency as `/dependencies/` shows it; `forced` is its override."""
    return {
        "name": row.name,
        "caller": row.caller,
        "callee": row.callee,
        **UNREGISTERED,
        **row.document,
        "on_outage": row.on_outage or None,
        "version": row.version,
        "registered": row.removed_at is None and bool(row.document),
        "registered_at": timestamp(row.registered_at),
        "changed_at": timestamp(row.changed_at),
        "removed_at": _timestamp(row.removed_at),
        "override": forced,
    }


def breaker_resources(standings: Sequence[DependencyStatus], now: datetime) -> list[dict[str, Any]]:
    """Return the states of these dependencies.

    One query reads the acknowledgements of their overrides.
    """
    forced = _override_resources([(one.dependency, one.override) for one in standings], now)
    return [breaker_resource(one, said) for one, said in zip(standings, forced, strict=True)]


def breaker_resource(standing: DependencyStatus, forced: dict[str, Any] | None) -> dict[str, Any]:
    """Return a row of the board, as `/breakers/` and live messages show it."""
    rate = standing.failure_rate
    return {
        "name": standing.dependency.name,
        "caller": standing.dependency.caller,
        "callee": standing.dependency.callee,
        "state": standing.state,
        "counts": standing.counts,
        "instances": standing.instances,
        "stale": standing.stale,
        "failure_rate": None if rate is None else round(rate, 4),
        "override": forced,
        "criticality": standing.dependency.criticality,
        "registered": bool(standing.dependency.document),
        "last_transition_at": _timestamp(standing.last_transition_at),
    }


def override_resource(row: Override, said: OverrideAcknowledgement | None) -> dict[str, Any]:
    """Return an override; `said` are its acknowledgements."""
    shown = {
        "mode": row.mode,
        "reason": row.reason,
        "set_by": override_endings.set_by_label(row),
        "set_at": timestamp(row.set_at),
        "expires_at": timestamp(row.expires_at),
        "version": row.version,
    }
    return shown if said is None else {**shown, "acknowledged": acknowledgement_resource(said)}


def acknowledgement_resource(said: OverrideAcknowledgement) -> dict[str, Any]:
    return {
        "applied": said.applied,
        "instances": said.instances,
        "stragglers": list(said.stragglers),
    }


def override_result(
    row: Dependency, one: Override, now: datetime, *, version: int | None = None
) -> dict[str, Any]:
    """Return an override that was just set or removed.

    `version` is the one that publishes its end.
    """
    published = one.version if version is None else version
    (said,) = list_acknowledgements([(row.caller, published)], now)
    return {
        "name": row.name,
        "caller": row.caller,
        "callee": row.callee,
        **override_resource(one, said),
        "version": published,
        "ended_at": _timestamp(one.ended_at),
        "ended_by": one.ended_by or None,
        "ended_why": one.ended_why or None,
    }


def transition_resource(row: Transition) -> dict[str, Any]:
    return {
        "id": row.pk,
        "instance": row.instance,
        "boot": str(row.boot),
        "n": row.n,
        "from": row.from_state,
        "to": row.to_state,
        "at": timestamp(row.at),
        "received_at": timestamp(row.received_at),
        "cause": row.cause,
    }


def minute_resource(row: Minute) -> dict[str, Any]:
    return {
        "minute": timestamp(row.minute),
        "worst": WORST[row.worst],
        "open": row.open,
        "half_open": row.half_open,
        "instances": row.instances,
        "counters": {name: getattr(row, name) for name in COUNTERS},
    }


def service_resource(row: Service) -> dict[str, Any]:
    return {"slug": row.pk, **SERVICES.audit_state(row), "changed_at": timestamp(row.changed_at)}


def channel_resource(row: Channel) -> dict[str, Any]:
    return {"name": row.pk, **CHANNELS.audit_state(row), "changed_at": timestamp(row.changed_at)}


def _override_resources(
    pairs: Sequence[tuple[Dependency, Override | None]], now: datetime
) -> list[dict[str, Any] | None]:
    live = [(row.caller, one.version) for row, one in pairs if one is not None]
    said = iter(list_acknowledgements(live, now))
    return [None if one is None else override_resource(one, next(said)) for _, one in pairs]


def _timestamp(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)
