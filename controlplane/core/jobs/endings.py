"""Messages and calls about jobs that end, or that only a person can end.

Last in a transaction.
"""

from datetime import datetime
from typing import Any

from controlplane.core.actors import system
from controlplane.core.audit import services as audit
from controlplane.core.escalations import services as escalation
from controlplane.core.jobs import kinds
from controlplane.core.jobs.models import Job
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.escalation import Escalation

FAILED, NOT_COMPENSATED = "job.failed", "job.compensation_failed"
STUCK, RECOVERED = "job.stuck", "job.recovered"


def get_subject(job: Job) -> str:
    """Return the subject that messages and escalations of a job share."""
    return f"job:{job.pk}"


def message_facts(job: Job, **more: Any) -> dict[str, Any]:
    """Return the facts of messages about a job."""
    kind = kinds.get_kinds().get(job.kind)
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


def close_call(job: Job, now: datetime) -> None:
    """Close the call about a job that completed or was taken back."""
    escalation.close(subject=get_subject(job), now=now)


def announce_failure(job: Job, now: datetime) -> None:
    """Announce that a job was given up; its effects are being taken back."""
    kind = kinds.get_kinds().get(job.kind)
    if kind is None or not kind.tells_failures:
        announce(job, FAILED, "warning", now)
    record_audit(job, FAILED, now, reason=job.error)


def call_failed_compensation(job: Job, why: str, now: datetime) -> None:
    """Call a person, once, because effects of a job could not be taken back."""
    if is_called(job, NOT_COMPENSATED):
        return
    escalation.close(subject=get_subject(job), now=now)  # That it was stuck: it is not, by now.
    to_do = "Remove the cause, or take it back by hand; it is tried again all the time."
    call_person(job, NOT_COMPENSATED, now, error=why, to_do=to_do)
    record_audit(job, NOT_COMPENSATED, now, reason=why)


def call_person(job: Job, event: str, now: datetime, **more: Any) -> None:
    """Call a person: routes are notified at once, the steps of the escalation one by one."""
    told = announce(job, event, "critical", now, **more)
    escalation.open_escalation(
        subject=get_subject(job),
        event=event,
        severity="critical",
        facts=message_facts(job, **more),
        now=now,
        announced=told > 0,
    )


def is_called(job: Job, event: str) -> bool:
    """Return True if an escalation of this event is open for the job."""
    calling = Escalation.objects.filter(subject=get_subject(job), closed_at=None, event=event)
    return calling.exists()


def record_audit(job: Job, action: str, now: datetime, reason: str = "") -> None:
    """Write the audit row of an automatic change; last in the transaction."""
    audit.record(
        actor=system("jobs"),
        action=action,
        target=job.subject,
        reason=reason,
        after={"job": job.pk, "kind": job.kind, "state": job.state, "step": job.step_index},
        now=now,
    )


def announce(job: Job, event: str, severity: str, now: datetime, **more: Any) -> int:
    """Notify the routes, once for a job, an event and a moment; return their number."""
    return outbox.announce(
        event=event,
        event_key=f"job:{job.pk}:{event}:{now.isoformat()}",
        severity=severity,
        subject=get_subject(job),
        facts=message_facts(job, **more),
        now=now,
    )
