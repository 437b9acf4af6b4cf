"""What open pages and programs may listen to of this app: how breakers stand."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from breakers import resources
from controlplane.core.live import topics

from .states import dependency_status


def read(ids: Sequence[str], now: datetime) -> dict[str, dict[str, Any]]:
    """The dependencies of these names (`core->oracle`), as `GET /breakers/` shows them."""
    found = dependency_status.of(dependency_status.by_name(ids), now)
    return {shown["name"]: shown for shown in resources.breakers(found, now)}


topics.register("breakers", scope="breakers:read", event="breaker.changed", read=read)
