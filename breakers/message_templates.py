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
            ("In place of", "replaces"),
        ),
    ),
    MessageTemplate(
        "override.ended",
        "🎛️",
        "{dependency} is no longer overridden ({mode}: {why})",
        (
            ("Ended by", "ended_by"),
            ("Why", "justification"),
            ("Applies again", "restored"),
            ("It was set by", "by"),
            ("It was set because", "reason"),
        ),
    ),
    MessageTemplate(
        "outage.acted",
        "🔌",
        "Outage of {dependency}: {done}",
        (("What was seen", "said"), ("The policy", "policy"), ("But", "why")),
        severity="warning",
    ),
    MessageTemplate(
        "outage.over",
        "🌤️",
        "The outage that {dependency} reported {how}",
        (("Why", "why"), ("It lasted since", "since_at"), ("What still stands", "said")),
    ),
    MessageTemplate(
        "probe.away",
        "📡",
        "{name} does not answer",
        (
            ("What was tried", "said"),
            ("Gone meanwhile", "fails"),
            ("Still works", "works"),
            ("Owner", "owner"),
            ("Runbook", "runbook"),
        ),
        severity="warning",
    ),
    MessageTemplate(
        "probe.back", "🌤️", "{name} answers again", (("It was away since", "since_at"),)
    ),
)
