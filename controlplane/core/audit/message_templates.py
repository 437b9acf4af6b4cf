from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "audit.anchored",
        "⚓",
        "Audit trail anchored at row {id}",
        (("Hash", "hash"), ("At", "at")),
        when="the head of the audit trail, for you to keep elsewhere",
    )
)
