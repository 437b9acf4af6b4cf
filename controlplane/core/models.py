"""All models of core, imported from its packages for Django."""

from controlplane.core.approvals.models import Approval as Approval
from controlplane.core.audit.models import AuditEntry as AuditEntry
from controlplane.core.audit.models import AuditRound as AuditRound
from controlplane.core.comments.models import Comment as Comment
from controlplane.core.configuration.models import SampleEntry as SampleEntry
from controlplane.core.degradation.models import Degradation as Degradation
from controlplane.core.favorites.models import Favorite as Favorite
from controlplane.core.first_steps.models import FirstStepsState as FirstStepsState
from controlplane.core.fleet.models import DataPlane as DataPlane
from controlplane.core.gates.models import EventCount as EventCount
from controlplane.core.gates.models import ExternalVerdict as ExternalVerdict
from controlplane.core.gates.models import Gate as Gate
from controlplane.core.gates.models import Hold as Hold
from controlplane.core.idempotency.models import IdempotencyKey as IdempotencyKey
from controlplane.core.instances.models import Acknowledgement as Acknowledgement
from controlplane.core.instances.models import CheckCount as CheckCount
from controlplane.core.instances.models import Instance as Instance
from controlplane.core.jobs.models import Job as Job
from controlplane.core.jobs.models import JobEffect as JobEffect
from controlplane.core.jobs.models import JobStep as JobStep
from controlplane.core.outbox.models import Attempt as Attempt
from controlplane.core.outbox.models import OutboxMessage as OutboxMessage
from controlplane.core.outbox.models import Pace as Pace
from controlplane.core.outbox.models import Thread as Thread
from controlplane.core.process_models import Heartbeat as Heartbeat
from controlplane.core.process_models import Tick as Tick
from controlplane.core.trip_requests.models import TripRequest as TripRequest

from .outbox.escalation import Escalation as Escalation
