"""What breakers have to say on pages that belong to nobody."""

from breakers import attention, report
from breakers.map import dependents
from controlplane.core import sections

sections.attention(8)(attention.open_breakers)
sections.attention(9)(attention.away)
sections.attention(36)(attention.forced)
sections.attention(50)(attention.alarms)

sections.report(66)(report.breakers)
sections.report(67)(report.overrides)

sections.preview(10)(dependents.of_switch)
