"""Attention items about breakers, dependencies, overrides and probes."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from breakers.models import Alarm, BreakerState, Override, Probe
from breakers.models.registry import Criticality
from breakers.probes.services import GRAVE_LEVEL
from breakers.services.overrides import OverrideAcknowledgement
from controlplane.core.durations import readable
from controlplane.core.page_registry import AttentionItem, attention_source

from . import message_facts, names
from .services import override_endings, overrides
from .states import unhealthy
from .states.unhealthy import UnhealthyDependency

MAX_ITEMS = 100
LONG = timedelta(hours=1)
SOON = timedelta(minutes=10)
HEARD_BY_THEN = timedelta(seconds=60)
"""Time after which an instance that does not apply an override is reported."""
NAMED = 3


def open_states(_now: datetime) -> QuerySet[BreakerState]:
    return BreakerState.objects.filter(state="open")


def silent_probes(_now: datetime) -> QuerySet[Probe]:
    refused = Q(since__isnull=True, failures=0) & ~Q(error="")
    return Probe.objects.filter(Q(is_away=True) | refused).exclude(service__probe_url="")


def live_overrides(_now: datetime) -> QuerySet[Override]:
    return Override.objects.filter(ended_at__isnull=True)


def open_alarms(_now: datetime) -> QuerySet[Alarm]:
    return Alarm.objects.filter(closed_at__isnull=True)


@attention_source(8, only_if=open_states)
def list_open_breakers(now: datetime) -> Sequence[AttentionItem]:
    """Open breakers of critical dependencies, critical; of others whose loss is felt, a warning."""
    return [
        AttentionItem(
            kind="breaker_open",
            severity="critical" if _is_critical(one) else "warning",
            title=f"The breaker of {one.name} is open",
            detail=f"In {one.open:,} of {one.instances:,} instances; "
            f"the dependency is {one.criticality}.",
            path=message_facts.dependency_path(one.caller, one.callee),
            since=min(one.since or now, now),
        )
        for one in sorted(
            _open_weighty(now), key=lambda one: (not _is_critical(one), one.since or now)
        )
    ][:MAX_ITEMS]


@attention_source(36, only_if=live_overrides)
def list_overrides(now: datetime) -> Sequence[AttentionItem]:
    """List overrides that are old, end soon, or are not applied by every instance.

    An override that ends soon may still be needed: whoever set it has time to extend it.
    """
    live = live_overrides(now).select_related("dependency")
    found = list(live.order_by("set_at", "pk")[:MAX_ITEMS])
    heard = overrides.list_acknowledgements(
        [(one.dependency.caller, one.version) for one in found], now
    )
    return [
        _override_item(one, said, by, now)
        for one, by in zip(found, heard, strict=True)
        if (said := _override_remarks(one, by, now))
    ]


def open_weighty_names(now: datetime) -> Collection[str]:
    """The dependencies (`core->oracle`) whose open breakers wait."""
    return {one.name for one in _open_weighty(now)}


@attention_source(50, only_if=open_alarms)
def list_outages(now: datetime) -> Sequence[AttentionItem]:
    """Outages that last, of dependencies with a policy for them."""
    rows = open_alarms(now).order_by("since", "pk")
    return [
        AttentionItem(
            kind="breaker_alarm",
            severity=one.severity,
            title=one.evidence.get("said") or f"{one.rule} of {one.subject}",
            detail=_advice(one),
            path=message_facts.dependency_path(*names.split_name(one.subject) or ("", "")),
            since=min(one.since, now),
        )
        for one in rows[:MAX_ITEMS]
    ]


@attention_source(9, only_if=silent_probes)
def list_away_probes(now: datetime) -> Sequence[AttentionItem]:
    """Services and stores that do not answer their probes, and those that may not be asked."""
    rows = silent_probes(now)
    return [
        AttentionItem(
            kind="probe_away",
            severity=_probe_severity(one),
            title=f"{one.service.name} {'does not answer' if one.is_away else 'is not asked'}",
            detail=f"{one.service.probe_url}: {one.error}",
            path="/breakers/infrastructure/",
            since=min(one.since or one.checked_at or now, now),
        )
        for one in rows.select_related("service").order_by("-is_away", "-service__level", "pk")[
            :MAX_ITEMS
        ]
    ]


def _open_weighty(now: datetime) -> list[UnhealthyDependency]:
    return [one for one in unhealthy.find_unhealthy(now).values() if one.open and one.is_weighty]


def _is_critical(one: UnhealthyDependency) -> bool:
    return one.criticality == Criticality.CRITICAL


def _probe_severity(probe: Probe) -> str:
    if not probe.is_away:
        return "info"
    return "critical" if probe.service.level >= GRAVE_LEVEL else "warning"


def _override_remarks(one: Override, by: OverrideAcknowledgement, now: datetime) -> list[str]:
    said = []
    late = now - one.set_at >= HEARD_BY_THEN
    if late and not by.instances:
        said.append(f"No instance of {one.dependency.caller} reports, so nobody goes by it.")
    elif late and not by.by_all:
        named = ", ".join(by.stragglers[:NAMED])
        behind = by.instances - by.applied
        rest = f" and {behind - NAMED:,} more" if behind > NAMED else ""
        said.append(f"{by.applied:,} of {by.instances:,} instances go by it, not {named}{rest}.")
    if one.expires_at - now <= SOON < one.expires_at - one.set_at:
        said.append("It ends soon.")
    if now - one.set_at > LONG:
        said.append(f"It has stood for {readable(now - one.set_at)}.")
    return said


def _override_item(
    one: Override, said: Sequence[str], by: OverrideAcknowledgement, now: datetime
) -> AttentionItem:
    heard = by.by_all or now - one.set_at < HEARD_BY_THEN
    return AttentionItem(
        kind="override",
        severity="info" if heard and now - one.set_at <= LONG else "warning",
        title=f"{one.dependency.name} is overridden: {one.mode}",
        detail=f"{' '.join(said)} Set by {override_endings.set_by_label(one)}: {one.reason}",
        path=message_facts.page_path(one.dependency),
        since=min(one.set_at, now),
        due_at=one.expires_at,
    )


def _advice(one: Alarm) -> str:
    done, why = one.evidence.get("done"), one.evidence.get("why")
    if not done:
        return "Its policy acts if that lasts."
    return f"By its policy: {done}. {why or ''}".strip()
