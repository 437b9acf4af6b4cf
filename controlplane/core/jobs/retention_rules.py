"""Retention of finished jobs: as long as their kind says, or permanently if it does not."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule
from controlplane.core.retention import purge as purge_by

from . import kinds
from .kinds import JobKind


def purge(now: datetime, *, most: int) -> int:
    """Delete old finished jobs with their steps and effects; return how many jobs.

    Failed compensations and duplicates are counted permanently, so these jobs stay.
    """
    return purge_by(rules(), now, at_once=most, most=most)


def rules() -> Sequence[RetentionRule]:
    """Return a rule for each kind of job that is not kept permanently."""
    known = sorted(kinds.get_kinds().values(), key=lambda kind: kind.name)
    return [_rule(kind, kind.kept_days) for kind in known if kind.kept_days is not None]


def _rule(kind: JobKind, days: int) -> RetentionRule:
    name = kind.name.replace("'", "''").replace("%", "%%")
    return RetentionRule(
        name=f"jobs.{kind.name}",
        model="core.Job",
        parts=("core.JobStep", "core.JobEffect"),
        period=timedelta(days=days),
        where=f"kind = '{name}' AND finished_at < %(before)s"
        " AND compensation_failed_at IS NULL AND duplicates_stopped = 0",
        since="finished_at",
        order="finished_at",
        bounds=(8, 3650),
        tick="jobs.purge",
        why=f"How it went, of “{kind.title}”.",
        exempt="Failed compensations and duplicates, which are counted for ever;"
        " other kinds of jobs.",
    )


RETENTION_RULES.register(*rules())
