"""Facts (the values in message texts) for the messages of escalations."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controlplane.core.canonical import timestamp
from controlplane.core.escalations import summaries
from controlplane.core.message_templates import format_time
from controlplane.core.outbox.escalation import Escalation

from .ladders import Ladder
from .schedule import ScheduleDecision

CLIMBED_FOR = "climbed_for"
"""Key of the fact with the owner's slug at the last notification, "" for none."""
TOLD_KEPT = 20
LISTED = 8
MAX_LISTED_LENGTH = 50


def step_facts(escalation: Escalation, verdict: ScheduleDecision, ladder: Ladder) -> dict[str, Any]:
    acknowledged = None
    if escalation.acknowledged_at is not None:
        at = format_time(timestamp(escalation.acknowledged_at))
        acknowledged = f"by {escalation.acknowledged_by} at {at}; it is still open"
    names = [rung.name for index, rung in enumerate(ladder.rungs) if index in verdict.notified]
    steps = ladder.rungs[: verdict.step]
    unreached = [f"{one.step.target.name}: {one.reach.why}" for one in steps if not one.reach.to]
    internal = (summaries.NOTIFIED, CLIMBED_FOR)
    own = {key: value for key, value in escalation.facts.items() if key not in internal}
    return {
        **own,
        "path": own.get("path") or summaries.ANY_PAGE,
        "escalation": escalation.pk,
        "title": summaries.format_title(escalation),
        "about": summaries.format_details(escalation),
        "now_told": ", ".join(dict.fromkeys(names)) or "the recipients of the routes",
        "told_before": summaries.format_notified(escalation),
        "not_reached": "; ".join(dict.fromkeys(unreached)),
        "acknowledged": acknowledged,
        "opened_at": timestamp(escalation.opened_at),
        "number": escalation.notices + 1,
    }


def list_facts(escalations: Sequence[Escalation]) -> dict[str, Any]:
    """Return the facts of one message about several escalations, the longest open first."""
    oldest = sorted(escalations, key=lambda one: (one.opened_at, one.pk))
    titles = [summaries.format_title(one) for one in oldest[:LISTED]]
    most = MAX_LISTED_LENGTH
    titles = [text if len(text) <= most else f"{text[: most - 1]}…" for text in titles]
    rest = len(oldest) - LISTED
    return {
        "count": len(oldest),
        "path": summaries.ANY_PAGE,
        "list": " · ".join(titles) + (f" · and {rest} more" if rest > 0 else ""),
        "escalations": [one.pk for one in oldest],
        "opened_at": timestamp(oldest[0].opened_at),
    }


def add_recipients(
    escalation: Escalation, verdict: ScheduleDecision, ladder: Ladder, now: datetime
) -> dict[str, Any]:
    """Return the escalation's facts plus the recipients of the notification sent at `now`."""
    who = [rung.name for index, rung in enumerate(ladder.rungs) if index in verdict.notified]
    facts: dict[str, Any] = {**escalation.facts, CLIMBED_FOR: ladder.owner}
    if not who:
        return facts
    entry = {"at": timestamp(now), "who": list(dict.fromkeys(who))}
    return {**facts, summaries.NOTIFIED: [*facts.get(summaries.NOTIFIED, []), entry][-TOLD_KEPT:]}
