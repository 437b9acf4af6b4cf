"""Message templates of drills."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

_LINES = (("Result", "said"), ("Reason", "reason"), ("By", "by"))

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "drill.passed", "🎯", "Drill of {switch} passed", _LINES, when="a drill passed"
    ),
    MessageTemplate(
        "drill.failed",
        "⚠️",
        "Drill of {switch} failed",
        _LINES,
        when="a drill failed",
        severity="warning",
    ),
    MessageTemplate(
        "drill.order_requested",
        "🎯",
        "Emergency drill: give an emergency order for {switch}",
        (("What to do", "said"), ("Reason", "reason"), ("By", "by")),
        when="an emergency drill began: somebody has to give an emergency order",
        severity="warning",
    ),
    MessageTemplate(
        "drill.missed",
        "⏭️",
        "Drill of {switch} could not start",
        (("Reason", "said"), ("Next try", "next_at"), ("By", "by")),
        when="a scheduled drill could not start",
        severity="warning",
    ),
)
