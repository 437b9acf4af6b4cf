"""Two-phase protocol of retry, discard and restore.

Preparing commits an intent and executes it in Redis, in transactions of its own, and can be
repeated. Recording writes the outcome and the audit row in the current transaction. If that never
happens, `breakers.dead_letters.intent_sweeper` settles the intent.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from django.db import transaction

from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable

from .execution import RemovalOutcome


class Prepared(Protocol):
    """An action that was executed in Redis and has to be recorded."""

    def record(self, now: datetime) -> dict[str, Any]:
        """Record the outcome in the current transaction, audit row last; return the response."""
        ...


def record_prepared(prepared: Prepared, now: datetime) -> dict[str, Any]:
    """Record a prepared action in a transaction of its own; return the response."""
    with transaction.atomic():
        return prepared.record(now)


def execute_intent(
    server: str,
    execute: Callable[[], RemovalOutcome],
    withdraw: Callable[[RemovalOutcome], object],
    *,
    noted: str,
) -> RemovalOutcome:
    """Execute a committed intent in Redis; withdraw it if the server refuses.

    Raises :class:`ServerRefused`, and :class:`ServerUnavailable` with a message that the action,
    described by `noted`, is executed later.
    """
    try:
        outcome = execute()
    except ServerUnavailable as error:
        raise ServerUnavailable(
            f"The Redis server {server} does not answer. {noted} is noted,"
            " and is carried out once it answers; asking again does no harm."
        ) from error
    if outcome.kind == "refused":
        withdraw(outcome)
        raise ServerRefused(outcome.why, server=server)
    return outcome
