from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "user.reset_asked",
        "🔑",
        "A new password for {username}",
        (("What to do", "said"), ("Asked from", "ip"), ("If it was not you", "otherwise")),
    )
)
