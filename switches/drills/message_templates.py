"""Message templates of drills."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

_LINES = (("What came of it", "said"), ("Why it was run", "reason"), ("By", "by"))

MESSAGE_TEMPLATES.register(
    MessageTemplate("drill.passed", "🎯", "{switch} is proven: its drill passed", _LINES),
    MessageTemplate(
        "drill.failed", "⚠️", "The drill of {switch} failed", _LINES, severity="warning"
    ),
    MessageTemplate(
        "drill.missed",
        "⏭️",
        "The drill of {switch} could not begin",
        (("Why not", "said"), ("Tried again", "next_at"), ("By", "by")),
        severity="warning",
    ),
)
