"""What breakers have to say on pages that belong to nobody."""

from breakers import attention, report
from breakers.dead_letters import attention as waiting_letters
from breakers.dead_letters import now as letters_now
from breakers.dead_letters import report as letters_report
from breakers.map import dependents
from controlplane.core import sections
from controlplane.core.runbooks import standing

sections.attention(8, only_if=attention.open_states)(attention.open_breakers)
sections.attention(9, only_if=attention.silent_probes)(attention.away)
sections.attention(36, only_if=attention.live_overrides)(attention.forced)
sections.attention(50, only_if=attention.open_alarms)(attention.outages)

sections.attention(38, only_if=waiting_letters.alarmed)(waiting_letters.backlogs)
sections.attention(39, only_if=waiting_letters.unfinished)(waiting_letters.stalled)
sections.attention(40, only_if=waiting_letters.silent_servers)(waiting_letters.away)
sections.attention(62, only_if=waiting_letters.deep)(waiting_letters.overfull)

sections.report(66)(report.breakers)
sections.report(67)(report.overrides)
sections.report(68)(letters_report.dead_letters)

sections.preview(10)(dependents.of_switch)

standing.of("dead-letters")(letters_now.deepest)
standing.of("dead-letters")(letters_now.breakers)
