"""Message templates of overrides, outages and probes."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "override.set",
        "🎛️",
        "{dependency} is overridden: {mode}",
        (
            ("By", "by"),
            ("Reason", "reason"),
            ("For", "lasts"),
            ("Until", "expires_at"),
            ("Replaces", "replaces"),
        ),
        when="a breaker was forced",
    ),
    MessageTemplate(
        "override.ended",
        "🎛️",
        "{dependency} is no longer overridden ({mode}: {why})",
        (
            ("Ended by", "ended_by"),
            ("Why", "justification"),
            ("Now in effect", "restored"),
            ("Set by", "by"),
            ("Reason for the override", "reason"),
        ),
        when="an override ended, or was removed",
    ),
    MessageTemplate(
        "outage.acted",
        "🔌",
        "Outage of {dependency}: {done}",
        (("Observed", "said"), ("Policy", "policy"), ("Note", "why")),
        when="an outage policy acted on an open breaker",
        severity="warning",
    ),
    MessageTemplate(
        "outage.over",
        "🌤️",
        "Outage of {dependency} {how}",
        (("Why", "why"), ("Since", "since_at"), ("Still in effect", "said")),
        when="the outage is over",
    ),
    MessageTemplate(
        "probe.away",
        "📡",
        "{name} does not respond",
        (
            ("Probe", "said"),
            ("Not working", "fails"),
            ("Still works", "works"),
            ("Owner", "owner"),
            ("Runbook", "runbook"),
        ),
        when="a service does not respond to its probe",
        severity="warning",
    ),
    MessageTemplate(
        "probe.back",
        "🌤️",
        "{name} responds again",
        (("Unavailable since", "since_at"),),
        when="the service responds again",
    ),
)
