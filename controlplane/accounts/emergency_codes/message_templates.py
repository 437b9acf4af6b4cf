"""Message template of emergency codes."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

from .services import EVENT

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        EVENT,
        "🔑",
        "Emergency code of {username} {change}",
        (
            ("By", "by"),
            ("From", "ip"),
            ("Why", "reason"),
            ("If you didn't expect it", lambda _: "Tell an admin, who can revoke the code."),
        ),
        when="an emergency code was created, replaced or revoked, for that person only",
    )
)
