"""Risk facts of a request about a switch, for its class in approvals."""

from datetime import datetime, timedelta
from math import inf

from controlplane.core.approvals.risk import RiskFacts
from controlplane.core.instances.models import Instance
from controlplane.core.instances.queries import callers
from switches.scopes import GLOBAL_ID

WITHIN = timedelta(hours=1)


def risk_facts(switch_id: str, now: datetime, *, for_good: bool = False) -> RiskFacts:
    """Return how many instances checked the switch lately, and if it is to stay permanently.

    A switch has no tags and no price.
    """
    return RiskFacts(recipients=_reached(switch_id, now), duration_minutes=inf if for_good else 0.0)


def _reached(switch_id: str, now: datetime) -> int:
    """Count the instances; for the global switch all, as reading their checks takes long."""
    if switch_id == GLOBAL_ID:
        return Instance.objects.filter(heard_at__gte=now - WITHIN).count()
    return callers(switch_id, now, within=WITHIN, most=0)[1]
