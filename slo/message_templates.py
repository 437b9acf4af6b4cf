"""Message templates of SLO and threshold alerts.

Facts of an alert: `said` (a sentence), `rule` (its key), `rule_words` (for people), `about` (the
subject), `service`, `owner`, `runbook`, `to_do`, `at`, and `path` (its page). Facts of a summary:
`count`, `list` (of subjects and rules), `first_said` and `path`.
"""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

_DETAILS = (
    ("Rule", "rule_words"),
    ("Service", "service"),
    ("Opened", "at"),
    ("What to do", "to_do"),
    ("Budget left when it opened", "budget_left"),
    ("At that rate, budget lasts until", "exhausts_at"),
    ("Owner", "owner"),
    ("Runbook", "runbook"),
)

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "slo.alert",
        "🔥",
        "{said}",
        _DETAILS,
        when="an alert opened: a budget burns too fast, or a metric exceeds its threshold",
        severity="warning",
        buttons=("acknowledge",),
    ),
    MessageTemplate(
        "slo.alert_over",
        "🌤️",
        "Resolved: {said}",
        (("Opened", "since_at"), ("Why it resolved", "why")),
        when="an alert resolved",
        incident_action="resolve",
    ),
    MessageTemplate(
        "slo.alerts",
        "🔥",
        "Alerts opened: {count}",
        (("Alerts", "list"), ("First", "first_said")),
        when="several alerts opened",
        severity="warning",
    ),
    MessageTemplate(
        "slo.alerts_over",
        "🌤️",
        "Alerts resolved: {count}",
        (("Alerts", "list"),),
        when="several alerts resolved",
    ),
    MessageTemplate(
        "slo.alerts_missed",
        "🕰️",
        "Alerts that opened and resolved before anyone was notified: {count}",
        (("Alerts", "list"), ("First", "first_said")),
        when="alerts that opened and resolved while SLOs were not evaluated",
    ),
)
