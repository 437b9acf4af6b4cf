"""The live topic `slo`, which pushes the statuses of SLOs to browsers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controlplane.core.canonical import timestamp
from controlplane.core.live import topics
from slo.models import Slo, SloStatus


def read_statuses(ids: Sequence[str], _now: datetime) -> dict[str, dict[str, Any]]:
    rows = Slo.objects.present().filter(name__in=ids).select_related("status")
    return {slo.name: status_resource(slo, getattr(slo, "status", None)) for slo in rows}


def status_resource(slo: Slo, status: SloStatus | None) -> dict[str, Any]:
    """Return a stored status like `GET …/status`, plus `name`, `service` and `since`."""
    identity = {"name": slo.name, "service": slo.service}
    if status is None:
        budget = {"remaining_ratio": None, "exhausts_at": None}
        nothing: dict[str, Any] = {"burn_rates": {}, "budget": budget, "rules": [], "coverage": {}}
        return {**identity, "state": "unknown", "since": None, **nothing}
    return {
        **identity,
        "state": status.state,
        "since": timestamp(status.since),
        "burn_rates": status.burn_rates,
        "budget": {
            "remaining_ratio": status.remaining_ratio,
            "exhausts_at": timestamp(status.exhausts_at) if status.exhausts_at else None,
        },
        "rules": status.rules,
        "coverage": status.coverage,
    }


topics.register("slo", scope="slo:read", event="slo.changed", read=read_statuses)
