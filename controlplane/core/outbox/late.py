"""Facts that are only made while a message goes out, so that they lie in no table.

Such as a link that opens an account: whoever reads the outbox, or a copy of it, finds none.
"""

from collections.abc import Callable, Mapping
from typing import Any

from controlplane.core.outbox.models import OutboxMessage

Make = Callable[[Mapping[str, Any]], Mapping[str, Any]]
_makers: dict[str, Make] = {}


def made_late(event: str) -> Callable[[Make], Make]:
    """Register the function that adds to the facts of an event while a mail about it is written."""

    def register(make: Make) -> Make:
        _makers[event] = make
        return make

    return register


def facts(message: OutboxMessage) -> Mapping[str, Any]:
    make = _makers.get(message.event)
    return {**message.payload, **make(message.payload)} if make else message.payload
