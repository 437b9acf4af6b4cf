"""The message template of a target's test."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "target.test",
        "🔔",
        "A test for {target}: if you read this, it works",
        (("Sent by", "by"), ("To do", "said")),
    ),
)
