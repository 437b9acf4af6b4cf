"""The message template of the reply to a pressed button."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "interaction.answered", "💬", "{said}", (), changes_state=False, is_ephemeral=True
    ),
)
