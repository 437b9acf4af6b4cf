"""Message templates of dead letter alarms and bulk jobs."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "dlq.backlog",
        "📮",
        "{depth} dead letters in {stream}",
        (
            ("More than", "limit"),
            ("Since", "since_at"),
            ("Growing by, a minute", "growth"),
            ("Most of them", "worst"),
            ("They came from", "origin"),
            ("What to do", "to_do"),
        ),
        severity="warning",
    ),
    MessageTemplate(
        "dlq.recovered",
        "🌤️",
        "Dead letters left in {stream}: {depth}",
        (("It was more than", "limit"), ("Since", "since_at"), ("Why", "why")),
    ),
    MessageTemplate(
        "dlq.replayed",
        "📬",
        "{stream}: {done} dead letters {did}",
        (
            ("Chosen", "chosen"),
            ("Gone meanwhile", "gone"),
            ("Left where they were", "skipped"),
            ("Because", "why"),
            ("By", "by"),
            ("Reason", "reason"),
        ),
    ),
    MessageTemplate(
        "dlq.purged",
        "🗑️",
        "{stream} purged: {done} dead letters, kept in the archive",
        (
            ("Chosen", "chosen"),
            ("Gone meanwhile", "gone"),
            ("Left where they were", "skipped"),
            ("By", "by"),
            ("Approved by", "approved_by"),
            ("Reason", "reason"),
        ),
        severity="warning",
    ),
)
