"""What switches have to say on pages that belong to nobody, in order."""

from controlplane.core import page_registry as sections
from switches.ramps import attention as ramps

from .drills import report_sections as drills
from .report import attention as waiting
from .report.report_sections import (
    decisions as asked,
)
from .report.report_sections import (
    engaged_switches as standing,
)
from .report.report_sections import (
    ramps as ramped,
)
from .report.report_sections import (
    weekly_activity as happened,
)
from .trips import attention as trips

WEEKLY = (
    standing.vague,
    standing.forgotten,
    standing.overdue,
    asked.reviews,
    standing.active,
    standing.permanent,
    asked.overridden,
    asked.approvals,
    asked.trips,
    happened.extends,
    happened.flow,
    happened.who,
)

for position, source in enumerate(WEEKLY, 1):
    sections.report(position * 10)(source)

sections.attention(15, only_if=trips.questions)(trips.trips_for_a_person)
sections.attention(80, only_if=waiting.unsigned)(waiting.unsigned_reports)

sections.attention(12, only_if=ramps.without_data)(ramps.holding)
sections.attention(35, only_if=ramps.long_paused)(ramps.paused)

sections.report(45)(ramped.ramps)
sections.report(65)(drills.not_rehearsed)
sections.attention(45, only_if=drills.failures)(drills.failed_drills)
sections.attention(90, only_if=drills.never_proven)(drills.never_rehearsed)
