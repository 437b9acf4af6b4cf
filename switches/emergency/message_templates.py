"""Message templates of emergency orders."""

from controlplane.core.message_templates import (
    MESSAGE_TEMPLATES,
    Facts,
    MessageTemplate,
    format_time,
)


def _describe_place(facts: Facts) -> str:
    at = facts.get("ordered_at")
    return ", ".join(filter(None, [facts.get("plane", ""), format_time(at) if at else ""]))


def _refusal_title(facts: Facts) -> str:
    order = f"emergency order for {facts.get('switch', '')}"
    if facts.get("action") == "withdraw":
        return f"Withdrawal of the {order} REFUSED"
    return f"{order[0].upper()}{order[1:]} REFUSED"


def _format_end(facts: Facts) -> str:
    return format_time(facts["blocks_until"]) if facts.get("blocks_until") else ""


_ORDER = (("Ordered by", "by"), ("Data plane", _describe_place), ("Reason", "reason"))

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "emergency_order.refused",
        "⛔",
        _refusal_title,
        (("Why", "said"), ("What to do", "to_do"), ("Blocks until", _format_end), *_ORDER),
        when="an emergency order or its withdrawal came from someone without the right",
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
