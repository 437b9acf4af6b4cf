"""The name of this environment for receivers, and stable ids to recognize repeats."""

import hashlib

from django.conf import settings

from controlplane.core.canonical import timestamp
from controlplane.core.outbox.models import OutboxMessage


def environment_name() -> str:
    """Return the name of this environment, in capitals for production."""
    name = str(settings.ENVIRONMENT_NAME)
    return name.upper() if name == "production" else name


def stable_id(message: OutboxMessage) -> str:
    """Return a message's id for receivers, `msg_…`, unique across installations and restores."""
    parts = (
        settings.ENVIRONMENT_NAME,
        str(message.pk),
        message.destination,
        message.event_key,
        timestamp(message.created_at),
    )
    return f"msg_{_digest(*parts)}"


def subject_id(message: OutboxMessage) -> str:
    """Return an id that messages about one subject to a destination share; "" without a subject."""
    if not message.subject:
        return ""
    return f"about_{_digest(settings.ENVIRONMENT_NAME, message.destination, message.subject)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
