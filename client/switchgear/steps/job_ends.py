"""Ends of the run of a job: it is over, or pauses."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from switchgear import journal
from switchgear.failures.error_labels import describe_error
from switchgear.refusals import CircuitOpen, Refused
from switchgear.steps.drivers import Execution
from switchgear.steps.errors import JobTaken, LeaseLost, Paused
from switchgear.steps.job_run import JobRun
from switchgear.steps.records import JobRecord, JobStatus, Row

log = logging.getLogger("switchgear")


def end(job_run: JobRun, status: JobStatus, reason: str | None) -> Execution[None]:
    """End the job with `status`."""
    now = job_run.now()
    changes: dict[str, Any] = {"status": status, "reason": reason, "completed_at": now}
    yield job_run.request(job_run.save, replace(job_run.record, **changes))
    name = "job_completed" if status is JobStatus.COMPLETED else "job_failed"
    seconds = max(now - (job_run.record.started_at or now), 0.0)
    journal.record(name, job_run.job.name, job=job_run.record.id, seconds=seconds)


def pause(job_run: JobRun, refusal: Refused, refused_seconds: float) -> Execution[None]:
    """Pause the job that `refusal` ends for now."""
    rows = _pause_rows(job_run.record, refusal, job_run.now(), refused_seconds)
    yield job_run.request(job_run.save, *rows)
    why = type(refusal).__name__
    journal.record("job_paused", job_run.job.name, job=job_run.record.id, why=why)


def _pause_rows(
    record: JobRecord, refusal: Refused, now: float, refused_seconds: float
) -> tuple[Row, ...]:
    """Return the rows of a job that `refusal` ends for now.

    It is due again when that says, at the latest when the question to people expires, else after
    `refused_seconds`.
    """
    question = None
    seconds: float | None = refused_seconds
    if isinstance(refusal, Paused):
        seconds, question = refusal.seconds, refusal.question
    elif isinstance(refusal, CircuitOpen) and refusal.retry_after:
        seconds = refusal.retry_after
    moments = [] if seconds is None else [now + seconds]
    if question is not None:
        moments.append(question.expires_at)
    changes: dict[str, Any] = {
        "reason": describe_error(refusal),
        "resume_at": min(moments, default=None),
    }
    row = replace(record, status=JobStatus.PAUSED, **changes)
    return (row,) if question is None else (row, question)


@contextlib.contextmanager
def log_failures(job_id: str) -> Iterator[None]:
    """Log an error of one job instead of raising it, so that the others run."""
    try:
        yield
    except (JobTaken, LeaseLost):
        pass  # Another worker was quicker.
    except Exception as error:
        log.error("switchgear: the job %s was not run: %s", job_id, describe_error(error))
