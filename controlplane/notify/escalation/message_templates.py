"""Message templates of escalations."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "escalation.step",
        "📣",
        "{title}",
        (
            ("Told now", "now_told"),
            ("Told before", "told_before"),
            ("Reaches nobody", "not_reached"),
            ("Acknowledged", "acknowledged"),
            ("About it", "about"),
            ("Waiting since", "opened_at"),
        ),
        severity="warning",
        buttons=("acknowledge",),
        is_digestible=True,
        is_broadcast=True,
        changes_state=False,
        is_urgent=True,
    ),
    MessageTemplate(
        "escalation.listing",
        "📣",
        "{count} things wait for somebody to acknowledge them",
        (("They are", "list"), ("The first since", "opened_at")),
        severity="warning",
        is_digestible=True,
        is_broadcast=True,
        changes_state=False,
        is_urgent=True,
    ),
    MessageTemplate(
        "escalation.acknowledged",
        "👀",
        "Acknowledged by {by}",
        (("About", "subject"),),
        changes_state=False,
        incident_action="acknowledge",
    ),
    MessageTemplate(
        "escalation.closed",
        "☑️",
        "Over: nobody has to act on {subject} any more",
        changes_state=False,
        incident_action="resolve",
    ),
)
