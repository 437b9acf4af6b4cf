from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "job.stuck",
        "🧊",
        "{title} {job} is stuck: nobody works on it",
        (
            ("About", "about"),
            ("Last sign of life", "silent_since_at"),
            ("Last worker", "worker"),
            ("Step", "step"),
            ("Begun by", "by"),
        ),
        severity="critical",
        buttons=("acknowledge",),
    ),
    MessageTemplate(
        "job.recovered",
        "🌤️",
        "{title} {job} goes on",
        (("About", "about"), ("It was stuck since", "since_at"), ("Step", "step")),
    ),
    MessageTemplate(
        "job.failed",
        "🧯",
        "{title} {job} has failed; what it did is taken back",
        (("About", "about"), ("Why", "error"), ("Step", "step"), ("Begun by", "by")),
        severity="warning",
    ),
    MessageTemplate(
        "job.compensation_failed",
        "🚨",
        "{title} {job} has failed, and what it did could not be taken back",
        (
            ("About", "about"),
            ("Why not", "error"),
            ("Step", "step"),
            ("What to do", "to_do"),
            ("Begun by", "by"),
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
    MessageTemplate("jobs.alarm_over", "🌤️", "Over: {said}", (("It was so since", "since_at"),)),
)
