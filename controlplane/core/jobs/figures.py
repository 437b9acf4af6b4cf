"""Figures about jobs: durations, failures of steps, sizes of checkpoints."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

RECENT = timedelta(days=1)
USUALLY_FROM, USUALLY_UNTIL = timedelta(days=30), timedelta(days=7)
MAX_STEPS = 200
"""Maximum number of steps listed, the most frequent first; usually there are far fewer."""

# A step that failed is compensated afterwards, if it can be: it is the one its job failed at.
_STEPS = """
    SELECT job.kind, step.name, count(*), avg(step.attempts)::float,
           count(*) FILTER (WHERE step.state = 'failed' OR (
               step.state = 'compensated' AND job.state = 'failed'
               AND job.step_index = step.index))
    FROM core_jobstep step JOIN core_job job ON job.id = step.job_id
    WHERE step.finished_at > %(since)s
    GROUP BY job.kind, step.name ORDER BY count(*) DESC, job.kind, step.name LIMIT %(most)s
"""
_DURATIONS = """
    WITH ended AS (
        SELECT kind, finished_at > %(lately)s AS recent,
               extract(epoch FROM finished_at - started_at) AS seconds
        FROM core_job
        WHERE finished_at > %(from)s AND (finished_at > %(lately)s OR finished_at <= %(until)s)
          AND started_at IS NOT NULL AND state = 'completed'
    )
    SELECT kind, recent, count(*), percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds)::float
    FROM ended GROUP BY kind, recent
"""
_CHECKPOINTS = """
    SELECT kind, max(checkpoint_bytes) FILTER (WHERE checkpoint IS NOT NULL)
    FROM core_job WHERE finished_at IS NULL GROUP BY kind
"""


@dataclass(frozen=True)
class StepFigures:
    """Steps of one name that ended in the last day."""

    kind: str
    step: str
    ended: int
    failed: int
    attempts: float

    @property
    def failure_ratio(self) -> float:
        return self.failed / self.ended


@dataclass(frozen=True)
class Durations:
    """P95 in seconds of completed jobs in the last day and 7 to 30 days ago, and their numbers."""

    kind: str
    recent_seconds: float = 0.0
    recent: int = 0
    usual_seconds: float = 0.0
    usual: int = 0


def measure_steps(now: datetime) -> list[StepFigures]:
    """Return the figures of the last day by kind and step, the busiest first."""
    rows = _rows(_STEPS, {"since": now - RECENT, "most": MAX_STEPS})
    return [
        StepFigures(kind, step, ended, failed, attempts)
        for kind, step, ended, attempts, failed in rows
    ]


def measure_durations(now: datetime) -> list[Durations]:
    """Return the durations of jobs by kind."""
    given = {
        "lately": now - RECENT,
        "from": now - USUALLY_FROM,
        "until": now - USUALLY_UNTIL,
    }
    found: dict[str, dict[str, Any]] = {}
    for kind, is_recent, count, seconds in _rows(_DURATIONS, given):
        name = "recent" if is_recent else "usual"
        found.setdefault(kind, {}).update({name: count, f"{name}_seconds": seconds})
    return [Durations(kind, **each) for kind, each in sorted(found.items())]


def measure_checkpoints() -> dict[str, int]:
    """Return the bytes of the largest checkpoint of unfinished jobs, by kind."""
    return {kind: size or 0 for kind, size in _rows(_CHECKPOINTS, {})}


def _rows(statement: str, given: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        yield from cursor.fetchall()
