"""SLOs, exclusions and alerts, as the API and live messages show them."""

from datetime import datetime
from typing import Any

import orjson
from django.db.models import TextField
from django.db.models.functions import Cast

from controlplane.core.canonical import timestamp
from controlplane.core.http.json_format import format_moment
from slo.arithmetic.minutes import end_of
from slo.models import Alert, Exclusion, Sli, Slo, SloStatus
from slo.objectives import documents
from slo.objectives.exclusions import ExclusionOutcome

RELATED = ("status", "sli")
"""Related rows that :func:`slo_resource` reads, to be selected with the SLO."""


def slo_resource(row: Slo) -> dict[str, Any]:
    """Return an SLO with its stored status."""
    status = _related(row, "status")
    sli = _related(row, "sli")
    return {
        "name": row.name,
        **documents.to_document(row),
        "version": row.version,
        "created_at": timestamp(row.created_at),
        "changed_at": timestamp(row.changed_at),
        **_status_fields(status if isinstance(status, SloStatus) else None),
        **_counted(sli if isinstance(sli, Sli) else None),
    }


COLUMNS = (
    "name", "service", "kind", "target", "window_days", "threshold_ms",
    *(Cast(column, TextField()) for column in ("source", "rules", "actions")),
    "min_events", "description", "owner", "runbook_url", "version", "created_at", "changed_at",
    "status__state", "status__since", "status__minute", "status__remaining_ratio",
    "status__exhausts_at", "sli__last", "sli__source_error", "sli__source_error_since",
)  # fmt: skip
"""Columns that :func:`serialize_row` reads."""


def serialize_row(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return the resource of an SLO as :func:`slo_resource` does, given a row of `COLUMNS`."""
    (
        name, service, kind, target, window_days, threshold_ms, source, rules, actions,
        min_events, description, owner, runbook_url, version, created_at, changed_at,
        state, since, minute, remaining_ratio, exhausts_at, last, source_error, source_error_since,
    ) = row  # fmt: skip
    return {
        "name": name,
        "service": service,
        "kind": kind,
        "target": float(target),
        "window_days": window_days,
        "threshold_ms": documents.threshold_as_number(threshold_ms),
        "source": orjson.Fragment(source),
        "rules": orjson.Fragment(rules),
        "min_events": min_events,
        "actions": orjson.Fragment(actions),
        "description": description,
        "owner": owner,
        "runbook_url": runbook_url,
        "version": version,
        "created_at": format_moment(created_at),
        "changed_at": format_moment(changed_at),
        "state": state or "unknown",
        "since": format_moment(since),
        "judged_at": None if minute is None else timestamp(end_of(minute)),
        "remaining_ratio": remaining_ratio,
        "exhausts_at": format_moment(exhausts_at),
        "counted_to": None if last is None else timestamp(end_of(last)),
        "source_error": source_error or None,
        "source_error_since": format_moment(source_error_since),
    }


def exclusion_resource(row: Exclusion) -> dict[str, Any]:
    return {
        "id": row.pk,
        "starts_at": timestamp(row.starts_at),
        "ends_at": timestamp(row.ends_at),
        "reason": row.reason,
        "created_by": row.created_by,
        "created_at": timestamp(row.created_at),
        "removed_by": row.removed_by or None,
        "removed_at": _timestamp_or_none(row.removed_at),
    }


def outcome_resource(done: ExclusionOutcome) -> dict[str, Any]:
    """Return an exclusion that was just added or removed, with the budget before and after."""
    return {
        **exclusion_resource(done.exclusion),
        "budget": {"before": done.before, "after": done.after},
    }


def alert_resource(row: Alert) -> dict[str, Any]:
    """Return an alert; select its SLO and threshold rule with the row."""
    return {
        "id": row.pk,
        "kind": row.kind,
        "state": row.state,
        "rule": row.rule,
        "subject": row.subject,
        "slo": row.slo.name if row.slo else None,
        "threshold": row.threshold.name if row.threshold else None,
        "service": row.service,
        "severity": row.severity,
        "label": row.label,
        "said": row.said,
        "path": row.path,
        "opened_at": timestamp(row.opened_at),
        "firing_at": timestamp(row.firing_at),
        "evidence": row.evidence,
        "latest": row.latest,
        "acknowledged_at": _timestamp_or_none(row.acknowledged_at),
        "acknowledged_by": row.acknowledged_by or None,
        "acknowledged_because": row.acknowledged_because or None,
        "resolved_at": _timestamp_or_none(row.resolved_at),
        "resolved_because": row.resolved_because or None,
    }


def _status_fields(row: SloStatus | None) -> dict[str, Any]:
    return {
        "state": row.state if row else "unknown",
        "since": timestamp(row.since) if row else None,
        "judged_at": timestamp(end_of(row.minute)) if row else None,
        "remaining_ratio": row.remaining_ratio if row else None,
        "exhausts_at": _timestamp_or_none(row.exhausts_at) if row else None,
    }


def _counted(row: Sli | None) -> dict[str, Any]:
    last = row.last if row else None
    return {
        "counted_to": None if last is None else timestamp(end_of(last)),
        "source_error": (row.source_error or None) if row else None,
        "source_error_since": _timestamp_or_none(row.source_error_since) if row else None,
    }


def _related(row: Slo, related: str) -> Any:
    """Return a related row, None if there is none."""
    return getattr(row, related, None)


def _timestamp_or_none(at: datetime | None) -> str | None:
    return None if at is None else timestamp(at)
