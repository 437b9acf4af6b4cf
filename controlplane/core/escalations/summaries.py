"""Text summaries of escalations: title, details and the people notified so far."""

from controlplane.core.message_templates import format_time
from controlplane.core.outbox import renderer
from controlplane.core.outbox.escalation import Escalation

ANY_PAGE = "/attention/"
NOTIFIED = "told"
"""Key of the fact that lists the people notified, and when."""
MAX_NOTIFIED_SHOWN = 4


def format_title(escalation: Escalation) -> str:
    return renderer.render(escalation.event, escalation.facts).title


def format_details(escalation: Escalation) -> str:
    """Return the details of an escalation on one line: `label: text · label: text`."""
    lines = renderer.render(escalation.event, escalation.facts).lines
    return " · ".join(f"{label}: {text}" for label, text in lines)


def format_notified(escalation: Escalation) -> str:
    """Return the people whom the escalation notified last, oldest first, or "nobody".

    Example: `on-call (kim) at 02:11 UTC; team-lead at 02:26 UTC`.
    """
    entries = escalation.facts.get(NOTIFIED, [])
    parts = [
        f"{', '.join(entry['who'])} at {format_time(entry['at'])}"
        for entry in entries[-MAX_NOTIFIED_SHOWN:]
    ]
    return "; ".join(parts) or "nobody"
