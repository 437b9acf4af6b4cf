"""The live topic `slo`, which pushes the statuses of SLOs to browsers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controlplane.core.canonical import timestamp_or_none
from controlplane.core.live import topics
from slo.models import Slo, SloStatus


def read_statuses(ids: Sequence[str], _now: datetime) -> dict[str, dict[str, Any]]:
    """Return the stored statuses of the named SLOs, by name.

    Their fields are those of `GET …/status`, plus `name`, `service` and `since`. The state is the
    one that screens show: unknown, not `ok`, without recent samples.
    """
    rows = Slo.objects.present().filter(name__in=ids).select_related("status")
    statuses = {slo: getattr(slo, "status", None) or SloStatus(state="unknown") for slo in rows}
    return {
        slo.name: {
            "name": slo.name,
            "service": slo.service,
            "state": status.state,
            "since": timestamp_or_none(status.since),
            "burn_rates": status.burn_rates,
            "budget": {
                "remaining_ratio": status.remaining_ratio,
                "exhausts_at": timestamp_or_none(status.exhausts_at),
            },
            "rules": status.rules,
            "coverage": status.coverage,
        }
        for slo, status in statuses.items()
    }


topics.register("slo", scope="slo:read", event="slo.changed", read=read_statuses)
