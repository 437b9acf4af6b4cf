"""A job that waits: for a moment, a person, or another worker."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from switchgear.failures.error_labels import said_by
from switchgear.refusals import CircuitOpen, Refused
from switchgear.steps.errors import JobTaken, LeaseLost, Paused
from switchgear.steps.records import JobRecord, JobStatus, Row

log = logging.getLogger("switchgear")


def paused(
    record: JobRecord, refusal: Refused, now: float, refused_seconds: float
) -> tuple[Row, ...]:
    """The rows of a job that `refusal` ends for now: due again when that says, at the latest when
    the question to people expires, else after `refused_seconds`."""
    question = None
    seconds: float | None = refused_seconds
    if isinstance(refusal, Paused):
        seconds, question = refusal.seconds, refusal.question
    elif isinstance(refusal, CircuitOpen) and refusal.retry_after:
        seconds = refusal.retry_after
    moments = [] if seconds is None else [now + seconds]
    if question is not None:
        moments.append(question.expires_at)
    changes: dict[str, Any] = {"reason": said_by(refusal), "resume_at": min(moments, default=None)}
    row = replace(record, status=JobStatus.PAUSED, **changes)
    return (row,) if question is None else (row, question)


@contextlib.contextmanager
def supervised(job_id: str) -> Iterator[None]:
    """One job's trouble is not the others'."""
    try:
        yield
    except (JobTaken, LeaseLost):
        pass  # Another worker was quicker.
    except Exception as error:
        log.error("switchgear: the job %s was not run: %s", job_id, said_by(error))
