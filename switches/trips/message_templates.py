"""Message templates of trips."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate
from switches.message_templates import WHY_ENGAGED

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
        "{source} also requests to stop {switch}",
        (("By", "by"), ("Reason", "reason"), ("Note", "why")),
        changes_state=False,
    ),
    MessageTemplate(
        "trip.resolved",
        "🌤️",
        "Alert resolved; {switch} stays engaged until someone releases it",
        (("Alert", "source"), WHY_ENGAGED),
        changes_state=False,
    ),
    MessageTemplate(
        "trip.waits",
        "🙋",
        "Decision needed: {source} requests to stop {switch}",
        (("Reason", "reason"), ("Reason for escalation", "why"), ("By", "by")),
        severity="critical",
        buttons=("acknowledge",),
        changes_state=False,
    ),
    MessageTemplate(
        "trip.refused",
        "✋",
        "Trip of {switch} by {source} refused",
        (("Refused because", "why"), ("Reason given", "reason"), ("By", "by")),
        severity="warning",
        changes_state=False,
    ),
    MessageTemplate(
        "trip_policy.changed",
        "📐",
        "Trip policies changed",
        (("Policies", "said"), ("By", "by")),
        severity="warning",
    ),
)
