"""One name for a message, the same at every attempt, by which receivers drop a repeat."""

import hashlib

from django.conf import settings

from controlplane.core.canonical import timestamp
from controlplane.core.outbox.models import OutboxMessage


def stable_id(message: OutboxMessage) -> str:
    """`msg_…`: no other message has it, also not one of another installation or after a restore."""
    parts = (
        settings.ENVIRONMENT_NAME,
        str(message.pk),
        message.destination,
        message.event_key,
        timestamp(message.created_at),
    )
    return f"msg_{_digest(*parts)}"


def subject_id(message: OutboxMessage) -> str:
    """The same for all messages about one subject at one destination; empty without a subject."""
    if not message.subject:
        return ""
    return f"about_{_digest(settings.ENVIRONMENT_NAME, message.destination, message.subject)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
