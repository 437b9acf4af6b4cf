"""The present status of dead letters in their runbook."""

from collections.abc import Sequence
from datetime import datetime

from breakers.dead_letters.models import LetterStream
from breakers.states import board
from controlplane.core.runbooks.status import StatusLine, runbook_status

from .monitoring import alarms

SHOWN = 5


@runbook_status("dead-letters")
def deepest(now: datetime) -> Sequence[StatusLine]:
    """The deepest streams, and the oldest letter of each."""
    deep = LetterStream.objects.filter(gone_at__isnull=True, depth__gt=0)
    lines = [
        StatusLine(
            said=f"{one.depth:,} in {_name(one)}",
            tone="bad" if one.alarmed_at else "warn",
            path=alarms.stream_path(one),
            since=one.oldest_at,
        )
        for one in deep.order_by("-depth")[:SHOWN]
    ]
    return lines or [
        StatusLine("No dead letter waits anywhere", tone="good", path=alarms.PAGES_PATH)
    ]


@runbook_status("dead-letters")
def breakers(now: datetime) -> Sequence[StatusLine]:
    """Breakers that are not closed: letters may come from the calls that they stop."""
    tally = board.load_tally(now)
    if not tally.open and not tally.half_open:
        return []
    said = f"{tally.open:,} breakers open, {tally.half_open:,} half-open"
    return [StatusLine(said, tone="warn", path="/breakers/")]


def _name(stream: LetterStream) -> str:
    return "the outbox" if stream.source == LetterStream.Source.OUTBOX else stream.name
