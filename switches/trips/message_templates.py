"""Message templates of trips."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate
from switches.message_templates import WHY_ENGAGED

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "trip.tripped",
        "🤖",
        "{source} stopped {switch}",
        (("By", "by"), ("Reason", "reason"), ("Allowed", "why")),
        when="a monitor engaged a switch",
        changes_state=False,
    ),
    MessageTemplate(
        "trip.engaged",
        "🤖",
        "{source} also requests to stop {switch}",
        (("By", "by"), ("Reason", "reason"), ("Note", "why")),
        when="a monitor requested a switch that is already engaged",
        changes_state=False,
    ),
    MessageTemplate(
        "trip.resolved",
        "🌤️",
        "Alert resolved; {switch} stays engaged until someone releases it",
        (("Alert", "source"), WHY_ENGAGED),
        when="the alert of a trip has resolved; the switch stays engaged",
        changes_state=False,
    ),
    MessageTemplate(
        "trip.waits",
        "🙋",
        "Decision needed: {source} requests to stop {switch}",
        (("Reason", "reason"), ("Reason for escalation", "why"), ("By", "by")),
        when="a request of a monitor needs a person's decision",
        severity="critical",
        buttons=("acknowledge",),
        changes_state=False,
    ),
    MessageTemplate(
        "trip.refused",
        "✋",
        "Trip of {switch} by {source} refused",
        (("Refused because", "why"), ("Reason given", "reason"), ("By", "by")),
        when="a request of a monitor was refused",
        severity="warning",
        changes_state=False,
    ),
    MessageTemplate(
        "trip_policy.changed",
        "📐",
        "Trip policies changed",
        (("Policies", "said"), ("By", "by")),
        when="trip policies were changed",
        severity="warning",
    ),
)
