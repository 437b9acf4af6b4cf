"""What is told of a job that ends, or that only a person can end. Last in a transaction."""

from datetime import datetime
from typing import Any

from controlplane.core.actors import system
from controlplane.core.audit import services as audit
from controlplane.core.escalation import services as escalation
from controlplane.core.jobs import kinds
from controlplane.core.jobs.models import Job
from controlplane.core.outbox import services as outbox

FAILED, NOT_COMPENSATED = "job.failed", "job.compensation_failed"


def subject(job: Job) -> str:
    """What messages and escalations about it share."""
    return f"job:{job.pk}"


def facts(job: Job, **more: Any) -> dict[str, Any]:
    """What messages about it say."""
    kind = kinds.known().get(job.kind)
    return {
        "job": job.pk,
        "kind": job.kind,
        "title": kind.title if kind else job.kind,
        "about": job.subject,
        "step": job.step_index + 1,
        "reason": job.reason,
        "error": job.error,
        "by": job.created_by,
        "path": kind.path(job) if kind else "/jobs/",
        **more,
    }


def over(job: Job, now: datetime) -> None:
    """It has come to its end, well; nobody is called any more."""
    escalation.close(subject=subject(job), now=now)


def failed(job: Job, now: datetime) -> None:
    """It was given up; what it had done is being taken back."""
    _tell(job, FAILED, "warning", now)


def not_compensated(job: Job, why: str, now: datetime) -> None:
    """What it did could not be taken back: a person is called, and it is tried again."""
    escalation.open_escalation(
        subject=subject(job),
        event=NOT_COMPENSATED,
        severity="critical",
        facts=facts(job, error=why),
        now=now,
        announced=True,
    )
    _tell(job, NOT_COMPENSATED, "critical", now, why)


def compensated(job: Job, now: datetime) -> None:
    """What it had done is taken back."""
    escalation.close(subject=subject(job), now=now)


def _tell(job: Job, event: str, severity: str, now: datetime, why: str = "") -> None:
    """Once for a job and an event, whatever the number of tries."""
    key = f"job:{job.pk}:{event}"
    audit.record(
        actor=system("jobs"),
        action=event,
        target=job.subject,
        reason=why or job.error,
        after={"job": job.pk, "kind": job.kind, "state": job.state, "step": job.step_index},
        now=now,
    )
    outbox.announce(
        event=event,
        event_key=key,
        severity=severity,
        subject=subject(job),
        facts=facts(job, error=why or job.error),
        now=now,
    )
