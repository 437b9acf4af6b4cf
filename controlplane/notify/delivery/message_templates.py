"""Message templates of the outbox: its backlog, and digests of many messages."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate
from controlplane.core.outbox.renderer import MAX_LISTED

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "outbox.backlog",
        "📬",
        "{pending} messages wait to go out",
        (("What to do", "said"), ("The oldest waits since", "waiting_since_at")),
        severity="critical",
        buttons=("acknowledge",),
    ),
    MessageTemplate(
        "outbox.drained",
        "📭",
        "The outbox has caught up: {pending} messages wait",
        (("There were too many since", "since_at"),),
    ),
    MessageTemplate(
        "outbox.digest",
        "📚",
        "{count} reminders at once",
        (*((f"{number + 1}", f"told_{number}") for number in range(MAX_LISTED)), ("And", "more")),
    ),
)
