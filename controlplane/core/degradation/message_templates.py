"""The message template of the degradation level."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "degradation.changed",
        "📉",
        "Degradation: level {level}, {name}",
        (
            ("Why", "causes"),
            ("Not working", "fails"),
            ("Still works", "works"),
            ("Previous level", "was"),
        ),
        when="the degradation level changed",
    ),
)
