"""The live topic `slo`, which pushes the statuses of SLOs to browsers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controlplane.core.canonical import timestamp_or_none
from controlplane.core.live import topics
from slo.models import Slo, SloStatus


def read_statuses(ids: Sequence[str], _now: datetime) -> dict[str, dict[str, Any]]:
    rows = Slo.objects.present().filter(name__in=ids).select_related("status")
    return {slo.name: status_resource(slo, getattr(slo, "status", None)) for slo in rows}


def status_resource(slo: Slo, status: SloStatus | None) -> dict[str, Any]:
    """Return a stored status like `GET …/status`, plus `name`, `service` and `since`."""
    shown = status or SloStatus(state="unknown")
    budget = {
        "remaining_ratio": shown.remaining_ratio,
        "exhausts_at": timestamp_or_none(shown.exhausts_at),
    }
    return {
        "name": slo.name,
        "service": slo.service,
        "state": shown.state,
        "since": timestamp_or_none(shown.since),
        "burn_rates": shown.burn_rates,
        "budget": budget,
        "rules": shown.rules,
        "coverage": shown.coverage,
    }


topics.register("slo", scope="slo:read", event="slo.changed", read=read_statuses)
