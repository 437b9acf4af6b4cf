from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "user.reset_asked",
        "🔑",
        "New password for {username}",
        (
            ("What to do", "said"),
            ("Requested from", "ip"),
            ("If you didn't request it", "otherwise"),
        ),
        when="a link for a new password, for that person only",
    )
)
