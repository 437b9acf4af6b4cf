from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "job.stuck",
        "🧊",
        "{title} {job} is stuck: no worker is running it",
        (
            ("About", "about"),
            ("Last heartbeat", "silent_since_at"),
            ("Last worker", "worker"),
            ("Step", "step"),
            ("Started by", "by"),
        ),
        severity="critical",
        buttons=("acknowledge",),
    ),
    MessageTemplate(
        "job.recovered",
        "🌤️",
        "{title} {job} is running again",
        (("About", "about"), ("Stuck since", "since_at"), ("Step", "step")),
    ),
    MessageTemplate(
        "job.failed",
        "🧯",
        "{title} {job} has failed and is being rolled back",
        (("About", "about"), ("Why", "error"), ("Step", "step"), ("Started by", "by")),
        severity="warning",
    ),
    MessageTemplate(
        "job.compensation_failed",
        "🚨",
        "{title} {job} has failed and could not be rolled back",
        (
            ("About", "about"),
            ("Cause", "error"),
            ("Step", "step"),
            ("What to do", "to_do"),
            ("Started by", "by"),
        ),
        severity="critical",
        buttons=("acknowledge",),
    ),
    MessageTemplate(
        "jobs.alarm",
        "⏱️",
        "{said}",
        (("What to do", "to_do"),),
        severity="warning",
        buttons=("acknowledge",),
    ),
    MessageTemplate("jobs.alarm_over", "🌤️", "Resolved: {said}", (("Since", "since_at"),)),
)
