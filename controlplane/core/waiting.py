"""What core itself has to say on the pages that gather: attention, the report, the preview."""

from controlplane.accounts.tokens import attention as instances
from controlplane.core.approvals import attention as approvals
from controlplane.core.attention import rows
from controlplane.core.audit import rounds
from controlplane.core.escalation import attention as escalation
from controlplane.core.jobs import attention as jobs
from controlplane.core.outbox import attention as outbox
from controlplane.core.targets import attention as targets

from . import page_registry as sections
from .outbox import report_sections as outbox_report

sections.attention(4, only_if=rows.broken_rounds)(rounds.broken)
sections.attention(5, only_if=rows.failed_compensations)(jobs.not_compensated)
sections.attention(6, only_if=rows.stuck_jobs)(jobs.stuck)
sections.attention(15, only_if=rows.reviews)(approvals.unsigned_reviews)
sections.attention(20, only_if=rows.escalations)(escalation.unacknowledged)
sections.attention(25, only_if=rows.requests)(approvals.pending_requests)
sections.attention(40, only_if=rows.paused_jobs)(jobs.forgotten)
sections.attention(80)(targets.unreachable)
sections.attention(60, only_if=rows.failed_messages)(outbox.failed)
sections.attention(61, only_if=rows.backlog_alarms)(outbox.backlogged)
sections.attention(62, only_if=rows.pending_messages)(outbox.held_up)
sections.attention(70, only_if=instances.contested_rows)(instances.contested)
sections.report(200)(outbox_report.deliveries)
