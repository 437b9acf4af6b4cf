"""Messages, escalations and audit rows for jobs that failed, are stuck, or recovered.

Each function takes the audit lock or writes messages, so call it last in the transaction.
"""

from datetime import datetime
from typing import Any

from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit import services as audit
from controlplane.core.escalations import services as escalation
from controlplane.core.jobs import kinds
from controlplane.core.jobs.models import Job
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.escalation import Escalation

FAILED, NOT_COMPENSATED = "job.failed", "job.compensation_failed"
STUCK, RECOVERED = "job.stuck", "job.recovered"


def get_subject(job: Job) -> str:
    return f"job:{job.pk}"


def message_facts(job: Job, **more: Any) -> dict[str, Any]:
    """Return the values for message templates about a job, plus the values `more`."""
    return {
        "job": job.pk,
        "kind": job.kind,
        "title": kinds.get_title(job),
        "about": job.subject,
        "step": job.step_index + 1,
        "reason": job.reason,
        "error": job.error,
        "by": job.created_by,
        "path": kinds.get_path(job),
        **more,
    }


def close_escalation(job: Job, now: datetime) -> None:
    escalation.close(subject=get_subject(job), now=now)


def announce_failure(job: Job, now: datetime) -> None:
    """Announce a failed job whose effects are being compensated."""
    kind = kinds.get_kinds().get(job.kind)
    if kind is None or not kind.tells_failures:
        announce(job, FAILED, "warning", now)
    record_audit(job, FAILED, now, reason=job.error)


def escalate_failed_compensation(job: Job, why: str, now: datetime) -> None:
    """Escalate a job whose compensation failed, unless that escalation is open already."""
    if is_escalated(job, NOT_COMPENSATED):
        return
    close_escalation(job, now)  # It is no longer stuck.
    to_do = "Fix the cause, or undo its effects by hand. The rollback is retried automatically."
    escalate(job, NOT_COMPENSATED, now, error=why, to_do=to_do)
    record_audit(job, NOT_COMPENSATED, now, reason=why)


def escalate(job: Job, event: str, now: datetime, **more: Any) -> None:
    """Announce a critical event of a job to all its routes, and open the job's escalation."""
    destinations = announce(job, event, "critical", now, **more)
    escalation.open_escalation(
        subject=get_subject(job),
        event=event,
        severity="critical",
        resource=kinds.get_resource(job),
        facts=message_facts(job, **more),
        now=now,
        announced=destinations > 0,
    )


def is_escalated(job: Job, event: str) -> bool:
    open_ones = Escalation.objects.filter(subject=get_subject(job), closed_at=None, event=event)
    return open_ones.exists()


def record_audit(
    job: Job,
    action: str,
    /,
    now: datetime,
    reason: str = "",
    *,
    actor: Actor | None = None,
    before: str = "",
    **more: Any,
) -> None:
    """Write an audit row about a job; `before` is the job's old state.

    The job engine is the actor by default. `more` are further values to record.
    """
    audit.record(
        actor=actor or system_actor("jobs"),
        action=action,
        target=job.subject,
        reason=reason,
        before={"job": job.pk, "state": before} if before else None,
        after={
            "job": job.pk,
            "kind": job.kind,
            "state": job.state,
            "step": job.step_index,
            **more,
        },
        now=now,
    )


def announce(job: Job, event: str, severity: str, now: datetime, **more: Any) -> int:
    """Send a message about a job to the event's routes; return the number of destinations."""
    return outbox.announce(
        event=event,
        event_key=f"job:{job.pk}:{event}:{now.isoformat()}",
        severity=severity,
        subject=get_subject(job),
        resource=kinds.get_resource(job),
        facts=message_facts(job, **more),
        now=now,
    )
