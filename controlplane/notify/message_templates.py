"""Message templates of the outbox, escalations, button replies and target tests."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate
from controlplane.core.outbox.renderer import MAX_LISTED

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "outbox.backlog",
        "📬",
        "{pending} messages are waiting to be sent",
        (("What to do", "said"), ("Oldest waiting since", "waiting_since_at")),
        severity="critical",
        buttons=("acknowledge",),
    ),
    MessageTemplate(
        "outbox.drained",
        "📭",
        "The outbox has caught up: {pending} messages are waiting",
        (("Backlog since", "since_at"),),
    ),
    MessageTemplate(
        "outbox.digest",
        "📚",
        "{count} reminders",
        (*((f"{number + 1}", f"told_{number}") for number in range(MAX_LISTED)), ("And", "more")),
    ),
    MessageTemplate(
        "escalation.step",
        "📣",
        "{title}",
        (
            ("Notified now", "now_told"),
            ("Notified before", "told_before"),
            ("Not reached", "not_reached"),
            ("Acknowledged", "acknowledged"),
            ("Details", "about"),
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
        "{count} items are not acknowledged",
        (("Items", "list"), ("Oldest since", "opened_at")),
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
        "Closed: {subject} needs no more action",
        changes_state=False,
        incident_action="resolve",
    ),
    MessageTemplate(
        "interaction.answered", "💬", "{said}", (), changes_state=False, is_ephemeral=True
    ),
    MessageTemplate(
        "target.test",
        "🔔",
        "Test message for {target}: it works",
        (("Sent by", "by"), ("To do", "said")),
    ),
)
