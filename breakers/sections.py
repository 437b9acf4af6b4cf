"""What breakers have to say on pages that belong to nobody."""

from breakers import attention, report
from breakers.dead_letters import attention as waiting_letters
from breakers.dead_letters import now as letters_now
from breakers.dead_letters import report as letters_report
from breakers.map import dependents
from controlplane.core import sections
from controlplane.core.runbooks import standing

sections.attention(8)(attention.open_breakers)
sections.attention(9)(attention.away)
sections.attention(36)(attention.forced)
sections.attention(50)(attention.outages)

sections.attention(38)(waiting_letters.backlogs)
sections.attention(39)(waiting_letters.stalled)
sections.attention(40)(waiting_letters.away)
sections.attention(62)(waiting_letters.overfull)

sections.report(66)(report.breakers)
sections.report(67)(report.overrides)
sections.report(68)(letters_report.dead_letters)

sections.preview(10)(dependents.of_switch)

standing.of("dead-letters")(letters_now.deepest)
standing.of("dead-letters")(letters_now.breakers)
