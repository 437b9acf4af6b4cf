from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "approval.requested",
        "✋",
        "Approval requested: {summary}",
        (("Requested by", "by"), ("Reason", "reason"), ("Risk", "risk"), ("Expires", "lapses_at")),
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
            ("Requested by", "by"),
            ("Reason", "reason"),
            ("Replaced by approval", "replaced_by"),
        ),
    ),
    MessageTemplate(
        "review.opened",
        "🔨",
        "BREAK-GLASS, review required by a second person: {summary}",
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
        "Review reopened, still unsigned: {summary}",
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
            ("Break-glass by", "by"),
            ("Reason", "reason"),
        ),
    ),
)
