"""Message template of changes that PostgreSQL has lost."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "publication.changes_lost",
        "⚠️",
        "PostgreSQL lost {changes}: the switches stay ENGAGED until you decide",
        (
            ("Switches", "switches"),
            ("Known from the data plane", "plane"),
            ("Lost version", "version"),
        ),
        when="PostgreSQL has lost changes, as in a failover, and switches were engaged again",
        severity="critical",
        is_urgent=True,
    ),
)
