"""Risk facts that approval requests about a switch show: affected callers and duration."""

from datetime import datetime, timedelta
from math import inf

from controlplane.core.approvals.risk import RiskFacts
from controlplane.core.instances.models import Instance
from controlplane.core.instances.queries import list_callers
from switches.scopes import GLOBAL_ID

WITHIN = timedelta(hours=1)


def risk_facts(switch_id: str, now: datetime, *, for_good: bool = False) -> RiskFacts:
    """Return the switch's number of callers in the last hour, and infinite duration if `for_good`.

    For the global switch, all instances that reported count as callers.
    """
    if switch_id == GLOBAL_ID:  # Avoids reading the checks of all instances.
        callers = Instance.objects.filter(heard_at__gte=now - WITHIN).count()
    else:
        callers = list_callers(switch_id, now, within=WITHIN, most=0)[1]
    return RiskFacts(recipients=callers, duration_minutes=inf if for_good else 0.0)
