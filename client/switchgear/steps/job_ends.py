"""Functions that end or pause the run of a job."""

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
from switchgear.steps.records import JobStatus, Row

log = logging.getLogger("switchgear")


def end_job(job_run: JobRun, status: JobStatus, reason: str | None) -> Execution[None]:
    """End the job with the final `status`."""
    now = job_run.now()
    changes: dict[str, Any] = {"status": status, "reason": reason, "completed_at": now}
    yield job_run.request(job_run.save, replace(job_run.record, **changes))
    name = "job_completed" if status is JobStatus.COMPLETED else "job_failed"
    seconds = max(now - (job_run.record.started_at or now), 0.0)
    journal.record(name, job_run.job.name, job=job_run.record.id, seconds=seconds)


def pause_job(job_run: JobRun, refusal: Refused, refused_seconds: float) -> Execution[None]:
    """Pause the job after `refusal`.

    The job is due again after the time that the refusal names; if it names none, after
    `refused_seconds`. If an approval request is open, the job is due at its expiry at the latest.
    After a :class:`Paused` without seconds or request, a person has to resume the job.
    """
    now, question = job_run.now(), None
    seconds: float | None = refused_seconds
    if isinstance(refusal, Paused):
        seconds, question = refusal.seconds, refusal.question
    elif isinstance(refusal, CircuitOpen) and refusal.retry_after:
        seconds = refusal.retry_after
    moments = [] if seconds is None else [now + seconds]
    if question is not None:
        moments.append(question.expires_at)
    record = replace(
        job_run.record,
        status=JobStatus.PAUSED,
        reason=describe_error(refusal),
        resume_at=min(moments, default=None),
    )
    rows: tuple[Row, ...] = (record,) if question is None else (record, question)
    yield job_run.request(job_run.save, *rows)
    why = type(refusal).__name__
    journal.record("job_paused", job_run.job.name, job=job_run.record.id, why=why)


@contextlib.contextmanager
def log_failures(job_id: str) -> Iterator[None]:
    """Log an error raised in the block instead of raising it, so that other jobs run."""
    try:
        yield
    except (JobTaken, LeaseLost):
        pass  # Another worker runs the job.
    except Exception as error:
        log.error("switchgear: the job %s was not run: %s", job_id, describe_error(error))
