"""Statistics of jobs: durations, step failures, checkpoint sizes."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core.sql import fetch_all

RECENT = timedelta(days=1)
USUALLY_FROM, USUALLY_UNTIL = timedelta(days=30), timedelta(days=7)
MAX_STEPS = 200
"""Maximum number of steps returned, the most frequent first."""

# A failed step may have been compensated since; it is the step at which its job failed.
_STEPS = """
    SELECT job.kind, step.name, count(*),
           count(*) FILTER (WHERE step.state = 'failed' OR (
               step.state = 'compensated' AND job.state = 'failed'
               AND job.step_index = step.index)),
           avg(step.attempts)::float
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
    SELECT kind, coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds)
                          FILTER (WHERE recent), 0)::float, count(*) FILTER (WHERE recent),
           coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds)
                    FILTER (WHERE NOT recent), 0)::float, count(*) FILTER (WHERE NOT recent)
    FROM ended GROUP BY kind ORDER BY kind
"""
_CHECKPOINTS = """
    SELECT kind, max(checkpoint_bytes) FILTER (WHERE checkpoint IS NOT NULL)
    FROM core_job WHERE finished_at IS NULL GROUP BY kind
"""


@dataclass(frozen=True)
class StepFigures:
    """Results, over the last 24 hours, of all runs of one step of a job kind.

    `ended` and `failed` count runs; `attempts` is the average per run.
    """

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
    """The P95 duration and the number of completed jobs of a kind, in two periods.

    `recent` is the last 24 hours; `usual` is the time from 30 to 7 days ago.
    """

    kind: str
    recent_seconds: float
    recent: int
    usual_seconds: float
    usual: int


def measure_steps(now: datetime) -> list[StepFigures]:
    """Return step results of the last 24 hours by kind and step name, most frequent first."""
    rows = fetch_all(_STEPS, {"since": now - RECENT, "most": MAX_STEPS})
    return [StepFigures(*row) for row in rows]


def measure_durations(now: datetime) -> list[Durations]:
    """Return the P95 durations of completed jobs by kind."""
    bounds = {"lately": now - RECENT, "from": now - USUALLY_FROM, "until": now - USUALLY_UNTIL}
    return [Durations(*row) for row in fetch_all(_DURATIONS, bounds)]


def measure_checkpoints() -> dict[str, int]:
    """Return the size in bytes of the largest checkpoint of unfinished jobs, by kind."""
    return {kind: size or 0 for kind, size in fetch_all(_CHECKPOINTS)}
