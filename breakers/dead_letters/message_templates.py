"""Message templates of dead letter alarms and bulk jobs."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "dlq.backlog",
        "📮",
        "{depth} dead letters in {stream}",
        (
            ("Limit", "limit"),
            ("Since", "since_at"),
            ("Growth per minute", "growth"),
            ("Most frequent error", "worst"),
            ("Origin stream", "origin"),
            ("What to do", "to_do"),
        ),
        when="a stream has had too many dead letters for too long",
        severity="warning",
    ),
    MessageTemplate(
        "dlq.recovered",
        "🌤️",
        "Back to normal: {depth} dead letters in {stream}",
        (("Limit", "limit"), ("Since", "since_at"), ("Why", "why")),
        when="the backlog is gone",
    ),
    MessageTemplate(
        "dlq.replayed",
        "📬",
        "{stream}: {done} dead letters {did}",
        (
            ("Selected", "chosen"),
            ("Already gone", "gone"),
            ("Skipped", "skipped"),
            ("Skipped because", "why"),
            ("By", "by"),
            ("Reason", "reason"),
        ),
        when="a bulk retry or discard finished",
    ),
    MessageTemplate(
        "dlq.purged",
        "🗑️",
        "{stream}: {done} dead letters purged to the archive",
        (
            ("Selected", "chosen"),
            ("Already gone", "gone"),
            ("Skipped", "skipped"),
            ("By", "by"),
            ("Approved by", "approved_by"),
            ("Reason", "reason"),
        ),
        when="a stream was purged to the archive",
        severity="warning",
    ),
)
