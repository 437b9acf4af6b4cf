"""SLOs, exclusions and alerts, as the API and live messages show them."""

from datetime import datetime
from typing import Any

from controlplane.core.canonical import timestamp
from slo.arithmetic.clock import end_of
from slo.models import Alert, Exclusion, Sli, Slo, Standing
from slo.objectives import documents
from slo.objectives.exclusions import Outcome

BESIDE = ("standing", "sli")
"""What :func:`slo` reads of other tables: to be selected with the rows."""


def slo(row: Slo) -> dict[str, Any]:
    """What is wanted, and how it stood when it was judged last."""
    standing = _of(row, "standing")
    sli = _of(row, "sli")
    return {
        "name": row.name,
        **documents.said(row),
        "version": row.version,
        "created_at": timestamp(row.created_at),
        "changed_at": timestamp(row.changed_at),
        **_standing(standing if isinstance(standing, Standing) else None),
        **_counted(sli if isinstance(sli, Sli) else None),
    }


def exclusion(row: Exclusion) -> dict[str, Any]:
    return {
        "id": row.pk,
        "starts_at": timestamp(row.starts_at),
        "ends_at": timestamp(row.ends_at),
        "reason": row.reason,
        "created_by": row.created_by,
        "created_at": timestamp(row.created_at),
        "removed_by": row.removed_by or None,
        "removed_at": _when(row.removed_at),
    }


def outcome(done: Outcome) -> dict[str, Any]:
    """An exclusion that was made or taken back just now, and what that did to the budget."""
    return {
        **exclusion(done.exclusion),
        "budget": {"before": done.before, "after": done.after},
    }


def alert(row: Alert) -> dict[str, Any]:
    """An alert, with its SLO or threshold rule; those are to be selected with the row."""
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
        "acknowledged_at": _when(row.acknowledged_at),
        "acknowledged_by": row.acknowledged_by or None,
        "acknowledged_because": row.acknowledged_because or None,
        "resolved_at": _when(row.resolved_at),
        "resolved_because": row.resolved_because or None,
    }


def _standing(row: Standing | None) -> dict[str, Any]:
    return {
        "state": row.state if row else "unknown",
        "since": timestamp(row.since) if row else None,
        "judged_at": timestamp(end_of(row.minute)) if row else None,
        "remaining_ratio": row.remaining_ratio if row else None,
        "exhausts_at": _when(row.exhausts_at) if row else None,
    }


def _counted(row: Sli | None) -> dict[str, Any]:
    last = row.last if row else None
    return {
        "counted_to": None if last is None else timestamp(end_of(last)),
        "source_error": (row.source_error or None) if row else None,
        "source_error_since": _when(row.source_error_since) if row else None,
    }


def _of(row: Slo, related: str) -> Any:
    """A row of another table that may not be there."""
    return getattr(row, related, None)


def _when(at: datetime | None) -> str | None:
    return None if at is None else timestamp(at)
