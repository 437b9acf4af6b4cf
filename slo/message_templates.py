"""Message templates of SLO and threshold alerts.

Facts of an alert: `said` (a sentence), `rule`, `about` (the subject), `service`, `owner`,
`runbook`, `to_do`, `at`, and `path` (its page). Facts of a summary: `count`, `list` (of subjects
and rules), `first_said` and `path`.
"""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

_DETAILS = (
    ("Rule", "rule"),
    ("Service", "service"),
    ("Since", "at"),
    ("What to do", "to_do"),
    ("Budget left", "budget_left"),
    ("It lasts until", "exhausts_at"),
    ("Owner", "owner"),
    ("Runbook", "runbook"),
)

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "slo.alert", "🔥", "{said}", _DETAILS, severity="warning", buttons=("acknowledge",)
    ),
    MessageTemplate(
        "slo.alert_over",
        "🌤️",
        "Over: {said}",
        (("It was so since", "since_at"), ("Why it is over", "why")),
        incident_action="resolve",
    ),
    MessageTemplate(
        "slo.alerts",
        "🔥",
        "Alerts: {count}",
        (("They are", "list"), ("The first of them", "first_said")),
        severity="warning",
    ),
    MessageTemplate(
        "slo.alerts_over", "🌤️", "Alerts that are over: {count}", (("They were", "list"),)
    ),
    MessageTemplate(
        "slo.alerts_missed",
        "🕰️",
        "Alerts that came and went while nobody judged: {count}",
        (("They were", "list"), ("The first of them", "first_said")),
    ),
)
