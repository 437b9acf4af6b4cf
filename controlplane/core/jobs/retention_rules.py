"""Retention rules of finished jobs, one per job kind with a retention period."""

from collections.abc import Sequence
from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

from . import kinds


def build_rules() -> Sequence[RetentionRule]:
    """Return a rule to delete old finished jobs, for each job kind with a retention period.

    Jobs with a failed compensation or rejected duplicate writes stay, because metrics count them.
    """
    return [
        RetentionRule(
            name=f"jobs.{kind.name}",
            model="core.Job",
            parts=("core.JobStep", "core.JobEffect"),
            period=timedelta(days=kind.kept_days),
            where=(
                "kind = '{}' AND finished_at < %(before)s"
                " AND compensation_failed_at IS NULL AND duplicates_stopped = 0".format(
                    kind.name.replace("'", "''").replace("%", "%%")
                )
            ),
            since="finished_at",
            order="finished_at",
            bounds=(8, 3650),
            tick="jobs.purge",
            why=f"Finished jobs of the kind “{kind.title}”.",
            exempt=(
                "Jobs with failed rollbacks or duplicates, which stay counted; other kinds of jobs."
            ),
        )
        for kind in sorted(kinds.get_kinds().values(), key=lambda kind: kind.name)
        if kind.kept_days is not None
    ]


RETENTION_RULES.register(*build_rules())
