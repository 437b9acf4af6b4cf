"""Sections that dead letters add to shared pages: attention, the weekly report, their runbook."""

from collections.abc import Sequence
from datetime import datetime

from breakers.dead_letters.models import LetterStream
from breakers.states import board
from controlplane.core import page_registry as sections
from controlplane.core.runbooks import status as standing
from controlplane.core.runbooks.status import Line

from . import attention
from . import report_sections as report
from .monitoring import alarms

SHOWN = 5

sections.attention(38, only_if=attention.alarmed)(attention.backlogs)
sections.attention(39, only_if=attention.unfinished)(attention.stalled)
sections.attention(40, only_if=attention.silent_servers)(attention.away)
sections.attention(62, only_if=attention.deep)(attention.overfull)
sections.report(68)(report.dead_letters)


@standing.of("dead-letters")
def deepest(now: datetime) -> Sequence[Line]:
    """The deepest streams, and the oldest letter of each."""
    deep = LetterStream.objects.filter(gone_at__isnull=True, depth__gt=0)
    lines = [
        Line(
            said=f"{one.depth:,} in {_name(one)}",
            tone="bad" if one.alarmed_at else "warn",
            path=alarms.path(one),
            since=one.oldest_at,
        )
        for one in deep.order_by("-depth")[:SHOWN]
    ]
    return lines or [Line("No dead letter waits anywhere", tone="good", path=alarms.PAGES)]


@standing.of("dead-letters")
def breakers(now: datetime) -> Sequence[Line]:
    """Breakers that are not closed: letters may come from the calls that they stop."""
    tally = board.tally(now)
    if not tally.open and not tally.half_open:
        return []
    said = f"{tally.open:,} breakers open, {tally.half_open:,} half-open"
    return [Line(said, tone="warn", path="/breakers/")]


def _name(stream: LetterStream) -> str:
    return "the outbox" if stream.source == LetterStream.Source.OUTBOX else stream.name
