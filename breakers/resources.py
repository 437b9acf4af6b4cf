"""API resources of dependencies and of breaker states, also sent in live messages."""

import functools
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db.models import TextField
from django.db.models.functions import Cast
from rest_framework import serializers

from breakers import names
from breakers.models import Dependency, Override
from breakers.policies.policy import validate_policy
from breakers.services.overrides import OverrideAcknowledgement, list_acknowledgements
from breakers.states.dependency_status import DependencyStatus
from controlplane.core.canonical import timestamp, timestamp_or_none
from controlplane.core.clock import db_now
from controlplane.core.http.json_format import format_moment
from controlplane.core.http.resources import OptionalTextField, Resource, TimestampField

UNREGISTERED = {**validate_policy({}), "managed_by": ""}
"""Policy fields shown for a dependency that is not registered."""
COLUMNS = (
    "id", "caller", "callee", Cast("document", TextField()), Cast("on_outage", TextField()),
    "version", "registered_at", "changed_at", "removed_at", "live_override__id",
)  # fmt: skip
"""Columns that :func:`serialize_rows` takes; `live_override` is a relation of the query."""


def serialize_rows(rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return the API resources of dependencies, given as rows of the values of `COLUMNS`."""
    ids = [row[-1] for row in rows if row[-1] is not None]
    live = list(Override.objects.filter(pk__in=ids).select_related("dependency")) if ids else []
    shown = _override_resources([(one.dependency, one) for one in live], db_now()) if live else []
    overrides = {one.pk: override for one, override in zip(live, shown, strict=True)}
    return [
        {
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
            "override": overrides.get(override_id),
        }
        for (
            _id, caller, callee, document, on_outage, version, registered_at, changed_at,
            removed_at, override_id,
        ) in rows
    ]  # fmt: skip


@functools.lru_cache(maxsize=1024)
def _parse_policy(document: str) -> dict[str, Any]:
    fields = {**UNREGISTERED, **orjson.loads(document)}
    return {name: orjson.Fragment(orjson.dumps(value)) for name, value in fields.items()}


def dependency_resource(row: Dependency, now: datetime) -> dict[str, Any]:
    """Return a dependency with its policy and its live override."""
    live = Override.objects.filter(dependency=row, ended_at__isnull=True).first()
    (override,) = _override_resources([(row, live)], now)
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
        "removed_at": timestamp_or_none(row.removed_at),
        "override": override,
    }


def breaker_resources(statuses: Sequence[DependencyStatus], now: datetime) -> list[dict[str, Any]]:
    """Return the API resource of each dependency status.

    The resources are built without serializers, since pages and live messages have hundreds.
    """
    overrides = _override_resources([(one.dependency, one.override) for one in statuses], now)
    return [
        {
            "name": one.dependency.name,
            "caller": one.dependency.caller,
            "callee": one.dependency.callee,
            "state": one.state,
            "counts": one.counts,
            "instances": one.instances,
            "stale": one.stale,
            "failure_rate": None if one.failure_rate is None else round(one.failure_rate, 4),
            "override": override,
            "criticality": one.dependency.criticality,
            "registered": bool(one.dependency.document),
            "last_transition_at": timestamp_or_none(one.last_transition_at),
        }
        for one, override in zip(statuses, overrides, strict=True)
    ]


class AcknowledgementsShape(Resource[OverrideAcknowledgement]):
    applied = serializers.IntegerField(
        help_text="Reporting instances of the caller that apply the override."
    )
    instances = serializers.IntegerField(help_text="Reporting instances of the caller.")
    stragglers = serializers.ListField(
        child=serializers.CharField(),
        help_text="Reporting instances that do not apply the override yet, at most 20.",
    )


class OverrideShape(Resource[Any]):
    mode = serializers.ChoiceField(Override.Mode.values)
    reason = serializers.CharField()
    set_by = serializers.CharField()
    set_at = TimestampField()
    expires_at = TimestampField()
    version = serializers.IntegerField(
        help_text="Configuration version that published the override."
    )
    acknowledged = AcknowledgementsShape()


class NameShape(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="`core->oracle`.")
    caller = serializers.CharField()
    callee = serializers.CharField()


class SavedOverrideShape(OverrideShape, NameShape):
    """The live override of a dependency; after a DELETE, the override that it ended."""

    ended_at = TimestampField(allow_null=True)
    ended_by = OptionalTextField()
    ended_why = OptionalTextField()
    dry_run = serializers.BooleanField(required=False)


def override_result(
    row: Dependency, override: Override, now: datetime, *, version: int | None = None
) -> dict[str, Any]:
    """Return the response to a change of an override.

    After a removal, pass as `version` the registry version that published it.
    """
    published = override.version if version is None else version
    (acknowledgement,) = list_acknowledgements([(row.caller, published)], now)
    values = _override_values(override, acknowledgement)
    names = {"name": row.name, "caller": row.caller, "callee": row.callee}
    return SavedOverrideShape.render({**values, **names, "version": published})


def _override_resources(
    pairs: Sequence[tuple[Dependency, Override | None]], now: datetime
) -> list[dict[str, Any] | None]:
    live = [(row.caller, one.version) for row, one in pairs if one is not None]
    acknowledgements = iter(list_acknowledgements(live, now))
    return [
        None if one is None else OverrideShape.render(_override_values(one, next(acknowledgements)))
        for _, one in pairs
    ]


def _override_values(row: Override, acknowledgement: OverrideAcknowledgement) -> dict[str, Any]:
    return {**vars(row), "set_by": row.set_by, "acknowledged": acknowledgement}
