"""The topic of live messages about breaker states."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from breakers import resources
from controlplane.core.live import topics

from .states import dependency_status


def read_breakers(ids: Sequence[str], now: datetime) -> dict[str, dict[str, Any]]:
    """Return the API resources of the dependencies with these names (`core->oracle`), by name."""
    found = dependency_status.load_statuses(dependency_status.find_by_names(ids), now)
    return {shown["name"]: shown for shown in resources.breaker_resources(found, now)}


topics.register("breakers", scope="breakers:read", event="breaker.changed", read=read_breakers)
