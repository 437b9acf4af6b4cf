"""Known causes of missing data: the switches that block the calls an SLO counts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db.models import Q, QuerySet

from breakers.models import Dependency
from controlplane.core.instances.exports import load_switch_requests
from slo.models import Slo
from switches.models import Episode, Ramp, SwitchState
from switches.scopes import GLOBAL_ID

MAX_LEAD = timedelta(hours=1)
"""Longest time from an engagement to the end of data that it may explain."""

MAX_RAMPS = 200


@dataclass(frozen=True)
class TrafficBlocker:
    """A switch that is engaged or ramping, and has blocked calls that an SLO counts.

    `how` is a clause that relates it to the SLO's service: `core checks it and calls oracle`.
    """

    switch: str
    state: SwitchState
    allow_percent: Decimal
    since: datetime
    how: str

    @property
    def sentence(self) -> str:
        """Return the likely cause for texts outside pages, with times in UTC."""
        at = f"{self.since.astimezone(UTC):%-d %b %H:%M} UTC"
        share = f", now ramping at {self.allow_percent.normalize():f} %"
        ramping = share if self.state == SwitchState.RAMPING else ""
        return f"Likely cause: {self.switch}, engaged since {at}{ramping}; {self.how}."


def find_blockers(
    silent_slos: Mapping[Slo, datetime],
) -> dict[int, list[TrafficBlocker]]:
    """Return the switches that may have ended the data of SLOs, latest first, by SLO id.

    `silent_slos` maps SLOs without data to the time since which they have none. A switch is
    related to an SLO if the SLO's actions engage it, if the SLO's service or a caller of that
    service checks it, or if a gate of its ramps names the SLO. It must have been engaged within the
    hour before the data ended.
    """
    if not silent_slos:
        return {}
    services = {slo.service for slo in silent_slos if slo.service}
    rows = Dependency.objects.registered().filter(callee__in=services)
    callers = defaultdict(set)
    for caller, callee in rows.values_list("caller", "callee"):
        callers[callee].add(caller)
    checked = defaultdict(set)
    for switch, service in load_switch_requests(services.union(*callers.values())):
        checked[switch].add(service)
    in_actions = {one["switch"] for slo in silent_slos for one in slo.actions if one.get("switch")}
    recent = Episode.objects.filter(
        ended_at__isnull=True,
        engaged_at__gte=min(silent_slos.values()) - MAX_LEAD,
        engaged_at__lte=max(silent_slos.values()),
    )
    gated = _load_gated_slos(silent_slos, recent)
    episodes = recent.filter(switch__in={GLOBAL_ID, *in_actions, *checked, *gated})
    found: dict[int, list[TrafficBlocker]] = defaultdict(list)
    for episode in episodes.order_by("-engaged_at"):
        for slo, since in silent_slos.items():
            how = _relate(episode.switch_id, slo, checked, callers, gated)
            if how and since - MAX_LEAD <= episode.engaged_at <= since:
                found[slo.pk].append(
                    TrafficBlocker(
                        episode.switch_id,
                        episode.state,
                        episode.allow_percent,
                        episode.engaged_at,
                        how,
                    )
                )
    return found


def _load_gated_slos(slos: Iterable[Slo], episodes: QuerySet[Episode]) -> Mapping[str, set[str]]:
    """Return the SLOs that gates of ramps name, by switch; only of the switches of `episodes`."""
    is_named = Q()
    for slo in slos:
        is_named |= Q(plan__contains=[{"gates": [{"slo": slo.name}]}])
    ramps = Ramp.objects.filter(is_named, switch__in=episodes.values("switch"))
    gated: dict[str, set[str]] = defaultdict(set)
    for switch, plan in ramps.order_by("-pk").values_list("switch", "plan")[:MAX_RAMPS]:
        gated[switch].update(gate.get("slo") for step in plan for gate in step["gates"])
    return gated


def _relate(
    switch: str,
    slo: Slo,
    checked: Mapping[str, set[str]],
    callers: Mapping[str, set[str]],
    gated: Mapping[str, set[str]],
) -> str:
    """Return a clause that says how a switch blocks traffic of an SLO; empty if it doesn't."""
    if switch == GLOBAL_ID:
        return "it blocks all traffic"
    if slo.service and slo.service in checked.get(switch, ()):
        return f"{slo.service} checks it"
    if calling := sorted(callers.get(slo.service, set()) & checked.get(switch, set())):
        if len(calling) == 1:
            return f"{calling[0]} checks it and calls {slo.service}"
        return f"{calling[0]} and {calling[1]} check it and call {slo.service}"
    if any(one.get("switch") == switch for one in slo.actions):
        return "an alert of this SLO engages it"
    if slo.name in gated.get(switch, ()):
        return "a gate of its ramp checks this SLO"
    return ""
