"""Putting messages into the outbox, in the transaction of the change they tell of."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.core.outbox import transports
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.wake import wake


def announce(*, event: str, event_key: str, facts: Mapping[str, Any], now: datetime) -> None:
    """Write one message per configured destination; a repeated `event_key` adds nothing.

    `facts` are plain JSON values; each transport words them in its own way.
    """
    destinations = transports.destinations()
    OutboxMessage.objects.bulk_create(
        [
            OutboxMessage(
                event=event,
                event_key=event_key,
                destination=destination,
                payload=dict(facts),
                next_attempt_at=now,
                created_at=now,
            )
            for destination in destinations
        ],
        ignore_conflicts=True,
    )
    if destinations:
        wake("outbox")
