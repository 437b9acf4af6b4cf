"""Querysets that tell if a source in *Needs attention* of core can have items.

They may match too many rows, never too few: calling a source in vain costs one query.
"""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from controlplane.core.approvals.models import Approval
from controlplane.core.approvals.reviews import REVIEW
from controlplane.core.audit.models import AuditRound
from controlplane.core.escalation.models import Escalation
from controlplane.core.jobs import watch
from controlplane.core.jobs.models import Job
from controlplane.core.outbox import backlog, selection
from controlplane.core.outbox.models import OutboxMessage

Rows = QuerySet[Any]


def broken_rounds(_now: datetime) -> Rows:
    return AuditRound.objects.exclude(problem="")


def failed_compensations(_now: datetime) -> Rows:
    return Job.objects.filter(state=Job.State.FAILED, compensation_failed_at__isnull=False)


def stuck_jobs(now: datetime) -> Rows:
    return watch.stuck(Job.objects.all(), now)


def paused_jobs(_now: datetime) -> Rows:
    return Job.objects.filter(state=Job.State.PAUSED, finished_at=None)


def reviews(_now: datetime) -> Rows:
    return Approval.objects.filter(kind=REVIEW, state=Approval.State.PENDING)


def requests(_now: datetime) -> Rows:
    return Approval.objects.filter(state=Approval.State.PENDING).exclude(kind=REVIEW)


def escalations(_now: datetime) -> Rows:
    return Escalation.objects.filter(closed_at=None, acknowledged_at=None)


def failed_messages(_now: datetime) -> Rows:
    return OutboxMessage.objects.filter(selection.GIVEN_UP)


def pending_messages(_now: datetime) -> Rows:
    return OutboxMessage.objects.filter(state="pending")


def backlog_alarms(_now: datetime) -> Rows:
    return Escalation.objects.filter(subject=backlog.SUBJECT, closed_at=None)
