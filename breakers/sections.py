"""What breakers have to say on pages that belong to nobody."""

from controlplane.core import page_registry as sections

from . import attention
from . import report_sections as report
from .map import preview_fields as dependents

sections.attention(8, only_if=attention.open_states)(attention.open_breakers)
sections.attention(9, only_if=attention.silent_probes)(attention.away)
sections.attention(36, only_if=attention.live_overrides)(attention.forced)
sections.attention(50, only_if=attention.open_alarms)(attention.outages)

sections.report(66)(report.breakers)
sections.report(67)(report.overrides)

sections.preview(10)(dependents.of_switch)
