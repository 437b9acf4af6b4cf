"""Facts computed while a message is rendered, and never stored.

Example: a link that activates an account must not appear in copies of the outbox.
"""

from collections.abc import Callable, Mapping
from typing import Any

from controlplane.core.outbox.models import OutboxMessage

ComputeFacts = Callable[[Mapping[str, Any]], Mapping[str, Any]]
_functions: dict[str, ComputeFacts] = {}


def compute_late(event: str) -> Callable[[ComputeFacts], ComputeFacts]:
    """Register a function that adds facts to an event's e-mail when it is rendered."""

    def register(compute: ComputeFacts) -> ComputeFacts:
        _functions[event] = compute
        return compute

    return register


def load_facts(message: OutboxMessage) -> Mapping[str, Any]:
    compute = _functions.get(message.event)
    return {**message.payload, **compute(message.payload)} if compute else message.payload
