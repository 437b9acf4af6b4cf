"""All models of core, imported from its packages for Django."""

from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry, AuditRound
from controlplane.core.degradation.models import Degradation
from controlplane.core.gates.models import EventCount, ExternalVerdict, Gate, Hold
from controlplane.core.idempotency.models import IdempotencyKey
from controlplane.core.instances.models import Acknowledgement, Instance
from controlplane.core.jobs.models import Job, JobEffect, JobStep
from controlplane.core.outbox.models import Attempt, OutboxMessage, Pace, Thread
from controlplane.core.process_models import Heartbeat, Tick
from controlplane.core.trip_requests.models import TripRequest

from .outbox.escalation import Escalation

__all__ = [
    "Acknowledgement",
    "Approval",
    "Attempt",
    "AuditEntry",
    "AuditRound",
    "Degradation",
    "Escalation",
    "EventCount",
    "ExternalVerdict",
    "Gate",
    "Heartbeat",
    "Hold",
    "IdempotencyKey",
    "Instance",
    "Job",
    "JobEffect",
    "JobStep",
    "OutboxMessage",
    "Pace",
    "Thread",
    "Tick",
    "TripRequest",
]
