from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "fleet.impaired",
        "🛰️",
        "{said}",
        (("Effect", "meaning"), ("What to do", "to_do"), ("Last heard", "heard_at")),
        when="a data plane or relay is silent, lags or has no snapshot",
        severity="warning",
        buttons=("acknowledge",),
    ),
    MessageTemplate(
        "fleet.recovered",
        "🌤️",
        "Resolved: {said}",
        (("Since", "since_at"), ("Reason", "reason")),
        when="the data plane or relay is up to date again, or gone",
    ),
)
