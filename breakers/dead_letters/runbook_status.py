"""Current status of dead letters, shown in their runbook."""

from collections.abc import Sequence
from datetime import datetime

from breakers.dead_letters.models import LetterStream
from breakers.states import dependency_status
from breakers.states.evidence import count_states
from controlplane.core.runbooks.library import StatusLine, runbook_status

from .monitoring import alarms

SHOWN = 5


@runbook_status("dead-letters")
def list_deepest_streams(now: datetime) -> Sequence[StatusLine]:
    """Return the deepest streams, each with the age of its oldest letter."""
    deep = LetterStream.objects.filter(gone_at__isnull=True, depth__gt=0)
    outbox = LetterStream.Source.OUTBOX
    lines = [
        StatusLine(
            text=f"{one.depth:,} in {'the outbox' if one.source == outbox else one.name}",
            tone="bad" if one.alarmed_at else "warn",
            path=alarms.stream_path(one),
            since=one.oldest_at,
        )
        for one in deep.order_by("-depth")[:SHOWN]
    ]
    return lines or [StatusLine("No dead letters", tone="good", path=alarms.PAGES_PATH)]


@runbook_status("dead-letters")
def count_open_breakers(now: datetime) -> Sequence[StatusLine]:
    """Return a line with the numbers of open and half-open breakers; no line if there are none."""
    counts = count_states(now)
    is_open, is_half_open = counts[dependency_status.OPEN], counts[dependency_status.HALF_OPEN]
    if not is_open and not is_half_open:
        return []
    text = f"Breakers: {is_open:,} open, {is_half_open:,} half-open"
    return [StatusLine(text, tone="warn", path="/breakers/")]
