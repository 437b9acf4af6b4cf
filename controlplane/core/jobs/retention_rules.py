"""How long jobs are kept that are over: as long as their kind says, and for ever if it doesn't."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from controlplane.core import retention

from . import kinds
from .kinds import Kind


def purge(now: datetime, *, most: int) -> int:
    """Delete jobs whose time is over, with their steps and effects; returns how many jobs.

    What is counted for as long as the house stands stays: failed compensations, and duplicates.
    """
    return retention.purge(rules(), now, at_once=most, most=most)


def rules() -> Sequence[retention.Rule]:
    """One for each kind that is not kept for ever."""
    known = sorted(kinds.known().values(), key=lambda kind: kind.name)
    return [_rule(kind, kind.kept_days) for kind in known if kind.kept_days is not None]


def _rule(kind: Kind, days: int) -> retention.Rule:
    name = kind.name.replace("'", "''").replace("%", "%%")
    return retention.Rule(
        name=f"jobs.{kind.name}",
        model="core.Job",
        parts=("core.JobStep", "core.JobEffect"),
        kept=timedelta(days=days),
        where=f"kind = '{name}' AND finished_at < %(before)s"
        " AND compensation_failed_at IS NULL AND duplicates_stopped = 0",
        since="finished_at",
        order="finished_at",
        bounds=(8, 3650),
        tick="jobs.purge",
        why=f"How it went, of “{kind.title}”.",
        but="Failed compensations and duplicates, which are counted for ever; other kinds of jobs.",
    )
