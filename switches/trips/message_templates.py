"""Message templates of trips."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "trip.tripped",
        "🤖",
        "{source} stopped {switch}",
        (("By", "by"), ("Reason", "reason"), ("Allowed", "why")),
        changes_state=False,
    ),
    MessageTemplate(
        "trip.engaged",
        "🤖",
        "{source} asks to stop {switch} too",
        (("By", "by"), ("Reason", "reason"), ("But", "why")),
        changes_state=False,
    ),
    MessageTemplate(
        "trip.resolved",
        "🌤️",
        "The alert has resolved; {switch} stays engaged until somebody releases it",
        (("Alert", "source"), ("Was", "reason")),
        changes_state=False,
    ),
    MessageTemplate(
        "trip.waits",
        "🙋",
        "{source} asks to stop {switch}: a person decides",
        (("Reason", "reason"), ("Why a person", "why"), ("By", "by")),
        severity="critical",
        buttons=("acknowledge",),
        changes_state=False,
    ),
    MessageTemplate(
        "trip.refused",
        "✋",
        "{source} was not allowed to stop {switch}",
        (("Why not", "why"), ("Reason", "reason"), ("By", "by")),
        severity="warning",
        changes_state=False,
    ),
    MessageTemplate(
        "trip_policy.changed",
        "📐",
        "What machines may stop was changed",
        (("Policies", "said"), ("By", "by")),
        severity="warning",
    ),
)
