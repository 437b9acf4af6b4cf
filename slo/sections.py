"""What SLOs have to say on pages that belong to nobody."""

from controlplane.core import sections
from slo import attention, report

sections.attention(6)(attention.unjudged)
sections.attention(7)(attention.alerts)
sections.attention(34)(attention.exhausted)
sections.attention(42)(attention.unread_sources)
sections.attention(44)(attention.long_unknown)

sections.report(64)(report.budgets)
