"""What open pages and programs may listen to of this app: how breakers stand, and dead letters."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from breakers import resources
from breakers.dead_letters import told
from breakers.states import standing
from controlplane.core.live import topics


def read(ids: Sequence[str], now: datetime) -> dict[str, dict[str, Any]]:
    """The dependencies of these names (`core->oracle`), as `GET /breakers/` shows them."""
    found = standing.of(standing.by_name(ids), now)
    return {shown["name"]: shown for shown in resources.breakers(found, now)}


topics.register("breakers", scope="breakers:read", event="breaker.changed", read=read)
topics.register("dlq", scope="dlq:read", event="dlq.changed", read=told.read)
