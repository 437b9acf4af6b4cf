from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "approval.requested",
        "✋",
        "Approval wanted: {summary}",
        (("Asked by", "by"), ("Reason", "reason"), ("Risk", "risk"), ("Lapses", "lapses_at")),
        severity="warning",
        buttons=("approve", "deny"),
    ),
    MessageTemplate(
        "approval.decided",
        "☑️",
        "{outcome}: {summary}",
        (
            ("Decided by", "decided_by"),
            ("Comment", "comment"),
            ("Asked by", "by"),
            ("Reason", "reason"),
            ("Replaced by approval", "replaced_by"),
        ),
    ),
    MessageTemplate(
        "review.opened",
        "🔨",
        "GLASS BROKEN, a review waits for a second person: {summary}",
        (("By", "by"), ("Rule overridden", "rule"), ("Reason", "reason")),
        severity="critical",
        buttons=("sign",),
    ),
    MessageTemplate(
        "review.waiting",
        "🔨",
        "Unsigned review: {summary}",
        (("By", "by"), ("Rule overridden", "rule"), ("Reason", "reason"), ("Since", "said")),
        severity="warning",
        buttons=("sign", "acknowledge"),
    ),
    MessageTemplate(
        "review.reopened",
        "🔨",
        "Review opened again, still unsigned: {summary}",
        (("By", "by"), ("Rule overridden", "rule"), ("Reason", "reason"), ("Since", "said")),
        severity="critical",
        buttons=("sign",),
    ),
    MessageTemplate(
        "review.signed",
        "☑️",
        "Review signed: {summary}",
        (
            ("Signed by", "decided_by"),
            ("Comment", "comment"),
            ("Glass broken by", "by"),
            ("Reason", "reason"),
        ),
    ),
)
