"""What core itself has to say on the pages that gather: attention, the report, the preview."""

from controlplane.core import sections
from controlplane.core.approvals import attention as approvals
from controlplane.core.audit import rounds
from controlplane.core.escalation import attention as escalation
from controlplane.core.jobs import attention as jobs
from controlplane.core.outbox import attention as outbox
from controlplane.core.outbox import report as outbox_report
from controlplane.core.targets import attention as targets

sections.attention(4)(rounds.broken)
sections.attention(5)(jobs.not_compensated)
sections.attention(6)(jobs.stuck)
sections.attention(15)(approvals.unsigned_reviews)
sections.attention(20)(escalation.unacknowledged)
sections.attention(25)(approvals.pending_requests)
sections.attention(40)(jobs.forgotten)
sections.attention(80)(targets.unreachable)
sections.attention(60)(outbox.failed)
sections.attention(61)(outbox.backlogged)
sections.attention(62)(outbox.held_up)
sections.report(200)(outbox_report.deliveries)
