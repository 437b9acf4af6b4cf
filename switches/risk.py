"""Risk facts of approval requests about a switch."""

from datetime import datetime, timedelta
from math import inf

from controlplane.core.approvals.risk import RiskFacts
from controlplane.core.instances.models import Instance
from controlplane.core.instances.queries import list_callers
from switches.scopes import GLOBAL_ID

WITHIN = timedelta(hours=1)


def risk_facts(switch_id: str, now: datetime, *, for_good: bool = False) -> RiskFacts:
    """Return the number of callers in the last hour, and the duration of the change.

    The duration is infinite if `for_good`, else 0 minutes.
    """
    return RiskFacts(
        recipients=_count_recipients(switch_id, now), duration_minutes=inf if for_good else 0.0
    )


def _count_recipients(switch_id: str, now: datetime) -> int:
    """Return the number of callers that checked the switch within the last hour.

    For the global switch, count all instances that reported, which avoids reading their checks.
    """
    if switch_id == GLOBAL_ID:
        return Instance.objects.filter(heard_at__gte=now - WITHIN).count()
    return list_callers(switch_id, now, within=WITHIN, most=0)[1]
