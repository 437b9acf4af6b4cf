"""Facts computed while a message is sent, so that they are never stored.

For example a link that activates an account: no copy of the outbox contains it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from controlplane.core.outbox.models import OutboxMessage

Make = Callable[[Mapping[str, Any]], Mapping[str, Any]]
_makers: dict[str, Make] = {}


def made_late(event: str) -> Callable[[Make], Make]:
    """Register the function that adds facts to an event's e-mail while it is rendered."""

    def register(make: Make) -> Make:
        _makers[event] = make
        return make

    return register


def facts(message: OutboxMessage) -> Mapping[str, Any]:
    make = _makers.get(message.event)
    return {**message.payload, **make(message.payload)} if make else message.payload
