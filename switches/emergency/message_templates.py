"""Message templates of emergency orders."""

from controlplane.core.message_templates import (
    MESSAGE_TEMPLATES,
    Facts,
    MessageTemplate,
    format_time,
)


def _describe_place(facts: Facts) -> str:
    return f"{facts['plane']}, {format_time(facts['ordered_at'])}"


_ORDER = (("Ordered by", "by"), ("Data plane", _describe_place), ("Reason", "reason"))

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "emergency_order.refused",
        "⛔",
        "Emergency order for {switch} REFUSED",
        (("Why", "said"), ("What to do", "to_do"), ("Blocks until", "blocks_until"), *_ORDER),
        when="an emergency order was given without the right to give it",
        severity="critical",
        is_urgent=True,
    ),
    MessageTemplate(
        "emergency_order.ended",
        "⌛",
        "Refused emergency order for {switch} has ended",
        (("Result", "said"), *_ORDER),
        when="a refused emergency order no longer blocks its switch",
        severity="warning",
        incident_action="resolve",
    ),
    MessageTemplate(
        "emergency_order.withdrawn_late",
        "↩️",
        "{switch} stays ENGAGED: its emergency order was withdrawn too late",
        (
            ("What to do", "said"),
            ("Withdrawn by", "by"),
            ("Data plane", _describe_place),
            ("Reason", "reason"),
        ),
        when="a withdrawal arrived after its emergency order had become an engagement",
        severity="warning",
    ),
)
