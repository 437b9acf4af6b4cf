"""What SLOs have to say on pages that belong to nobody."""

from controlplane.core import page_registry as sections

from . import attention
from . import report_sections as report

sections.attention(6, only_if=attention.present)(attention.unjudged)
sections.attention(7, only_if=attention.open_alerts)(attention.alerts)
sections.attention(34, only_if=attention.spent)(attention.exhausted)
sections.attention(42, only_if=attention.unread)(attention.unread_sources)
sections.attention(44, only_if=attention.unknown)(attention.long_unknown)

sections.report(64)(report.budgets)
