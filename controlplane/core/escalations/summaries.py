"""Text summaries of escalations: title, details, and the people notified so far."""

from controlplane.core.message_templates import format_time
from controlplane.core.outbox import rendering
from controlplane.core.outbox.escalation import Escalation

ANY_PAGE = "/attention/"
TOLD = "told"
"""Key of the fact that lists the people notified, and when."""
TOLD_SHOWN = 4


def title(escalation: Escalation) -> str:
    """Return the title of an escalation's messages."""
    return rendering.render(escalation.event, escalation.facts).title


def about(escalation: Escalation) -> str:
    """Return the lines of an escalation's messages, as one line."""
    lines = rendering.render(escalation.event, escalation.facts).lines
    return " · ".join(f"{label}: {text}" for label, text in lines)


def told_before(escalation: Escalation) -> str:
    """Return the last people notified, oldest first, or "nobody".

    For example `on-call (kim) at 02:11 UTC; team-lead at 02:26 UTC`.
    """
    entries = escalation.facts.get(TOLD, [])
    said = [
        f"{', '.join(entry['who'])} at {format_time(entry['at'])}"
        for entry in entries[-TOLD_SHOWN:]
    ]
    return "; ".join(said) or "nobody"
