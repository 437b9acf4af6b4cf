"""What SLOs have to say on pages that belong to nobody."""

from controlplane.core import page_registry as sections

from . import attention
from . import report_sections as report

sections.attention(6, only_if=attention.present_slos)(attention.list_evaluation_stopped)
sections.attention(7, only_if=attention.unacknowledged_alerts)(attention.list_alerts)
sections.attention(34, only_if=attention.exhausted_statuses)(attention.list_exhausted)
sections.attention(42, only_if=attention.unread_slis)(attention.list_unread_sources)
sections.attention(44, only_if=attention.long_unknown_statuses)(attention.list_long_unknown)

sections.report(64)(report.budgets_section)
