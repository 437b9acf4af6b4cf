"""The check of the source documents: a query in, whether it may go on and what its user is told."""

from collections.abc import Callable
from typing import Any

from switchgear.deciding.evaluate import Decision

Query = Any


def told(query: Query, check: Callable[..., Decision]) -> tuple[bool, str | None]:
    decision = check()
    return decision.allowed, decision.reason
