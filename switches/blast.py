"""Blast radius of a switch: its recent callers with their rates, and overlapping switches.

Callers are the service instances and API tokens that checked the switch, known from instance
reports and `/check` requests. Clients that only poll the snapshot are not counted.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf

from controlplane.core.approvals.risk import RiskFacts
from controlplane.core.freshness import Freshness, assess_freshness
from controlplane.core.instances.checked_keys import (
    CHECKED_WITHIN,
    RATE_PERIOD,
    CallingService,
)
from controlplane.core.instances.exports import TOKEN_PREFIX, load_switches_checked_together
from controlplane.core.instances.models import Instance
from controlplane.core.instances.queries import Caller, list_callers
from switches.models import Episode, SwitchState
from switches.rules import guard
from switches.rules.evaluation import Refusal
from switches.scopes import GLOBAL_ID, SCOPES

MAX_NAMED_CALLERS = 200
MAX_NAMED_OVERLAPS = 50


@dataclass(frozen=True)
class SwitchBlastRadius:
    """The callers that engaging a switch would affect, and overlapping switches.

    `instances` lists the busiest 200 of `instances_total` callers: service processes and API
    tokens. `tokens` is the number of API tokens; any number of processes may share one.
    `stopped` of the processes stopped cleanly and have made no contact since.
    `freshness` is that of the call rates, which are of the last minute.
    `overlapping` are open episodes of other switches that block part of the same traffic.
    `refusals` pairs an action (`engage` or `release`) with a safety rule's refusal of it now.
    """

    switch: str
    instances: tuple[Caller, ...]
    instances_total: int
    services: tuple[CallingService, ...]
    tokens: int
    calls_per_second: float
    last_seen: datetime | None
    freshness: Freshness
    overlapping: tuple[Episode, ...]
    refusals: tuple[tuple[str, Refusal], ...] = ()

    @property
    def is_global(self) -> bool:
        return self.switch == GLOBAL_ID

    @property
    def processes(self) -> int:
        return self.instances_total - self.tokens

    @property
    def stopped(self) -> int:
        return sum(service.stopped for service in self.services)


def blast_radius(switch_id: str, now: datetime) -> SwitchBlastRadius:
    """Return the switch's blast radius, from the checks of the last hour.

    For `global:all`, the checks of all switches count.
    """
    found, total = list_callers(
        None if switch_id == GLOBAL_ID else switch_id, now, within=CHECKED_WITHIN, most=None
    )
    last_seen = max((caller.last_seen for caller in found), default=None)
    named = [caller for caller in found if not caller.id.startswith(TOKEN_PREFIX)]
    return SwitchBlastRadius(
        switch=switch_id,
        instances=tuple(found[:MAX_NAMED_CALLERS]),
        instances_total=total,
        services=group_by_service(named),
        tokens=total - len(named),
        calls_per_second=sum(caller.calls_per_second for caller in found),
        last_seen=last_seen,
        freshness=assess_freshness(last_seen, RATE_PERIOD, now),
        overlapping=_find_overlaps(switch_id, now),
    )


def wider_engaged(switch_id: str, now: datetime) -> list[Episode]:
    """Return engagements in wider scopes that already block some of this switch's traffic."""
    order = {scope: place for place, scope in enumerate(SCOPES.names)}
    place = order[switch_id.partition(":")[0]]
    return [
        episode
        for episode in _find_overlaps(switch_id, now)
        if order.get(episode.switch_id.partition(":")[0], place) < place
        and episode.state == SwitchState.ENGAGED
    ]


def current_refusals(switch_id: str) -> tuple[tuple[str, Refusal], ...]:
    return (
        *(("engage", refusal) for refusal in guard.refusals_to_engage(switch_id)),
        *(("release", refusal) for refusal in guard.refusals_to_release(switch_id)),
    )


def group_by_service(found: Sequence[Caller]) -> tuple[CallingService, ...]:
    """Return totals of these callers by service, the busiest service first."""
    grouped: dict[str, list[Caller]] = defaultdict(list)
    for caller in found:
        grouped[caller.service].append(caller)
    services = [
        CallingService(
            id=service,
            instances=len(group),
            calls_per_second=sum(caller.calls_per_second for caller in group),
            last_seen=max(caller.last_seen for caller in group),
            stopped=sum(caller.has_stopped for caller in group),
        )
        for service, group in grouped.items()
    ]
    return tuple(sorted(services, key=lambda service: (-service.calls_per_second, service.id)))


def _find_overlaps(switch_id: str, now: datetime) -> tuple[Episode, ...]:
    """Return the open episodes of other switches that may block the same traffic.

    For the global switch, these are all others; else the global switch, and switches that the
    same instances check. Checks with the same token don't count, as many programs may share a
    token.
    """
    episodes = Episode.objects.filter(ended_at__isnull=True).exclude(switch_id=switch_id)
    if switch_id != GLOBAL_ID:
        together = load_switches_checked_together(switch_id, now - CHECKED_WITHIN)
        episodes = episodes.filter(switch_id__in={GLOBAL_ID, *together})
    return tuple(episodes.order_by("switch_id")[:MAX_NAMED_OVERLAPS])


def risk_facts(switch_id: str, now: datetime, *, for_good: bool = False) -> RiskFacts:
    """Return the facts that determine the risk of a request about the switch.

    `recipients` is the number of callers in the last hour; for the global switch, of all instances
    that reported. The duration is infinite if `for_good`, else 0.
    """
    if switch_id == GLOBAL_ID:  # Avoids reading the checks of all instances.
        callers = Instance.objects.filter(heard_at__gte=now - CHECKED_WITHIN).count()
    else:
        callers = list_callers(switch_id, now, within=CHECKED_WITHIN, most=0)[1]
    return RiskFacts(recipients=callers, duration_minutes=inf if for_good else 0.0)
