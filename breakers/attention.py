"""Attention items about open breakers, overrides, outages and failing probes."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from breakers.models import Alarm, BreakerState, Override, Probe
from breakers.models.registry import Criticality
from breakers.probes.services import GRAVE_LEVEL
from breakers.services.overrides import OverrideAcknowledgement
from controlplane.core.durations import format_readable
from controlplane.core.page_registry import (
    AttentionAction,
    AttentionItem,
    attention_rows,
    attention_source,
)

from . import message_facts, names
from .services import overrides
from .services.permissions import get_end_action
from .states import unhealthy
from .states.unhealthy import UnhealthyDependency
from .templatetags.breakers import MODES

MAX_ITEMS = 100
LONG = timedelta(hours=1)
SOON = timedelta(minutes=10)
HEARD_BY_THEN = timedelta(seconds=60)
"""Time after which instances that do not apply an override are listed."""
NAMED = 3


def silent_probes(_now: datetime) -> QuerySet[Probe]:
    refused = Q(since__isnull=True, failures=0) & ~Q(error="")
    rows = Probe.objects.filter(Q(is_away=True) | refused).exclude(service__probe_url="")
    return rows.select_related("service").order_by("-is_away", "-service__level", "pk")[:MAX_ITEMS]


def live_overrides(_now: datetime) -> QuerySet[Override]:
    rows = Override.objects.filter(ended_at__isnull=True).select_related("dependency")
    return rows.order_by("set_at", "pk")[:MAX_ITEMS]


def open_alarms(_now: datetime) -> QuerySet[Alarm]:
    return Alarm.objects.filter(closed_at__isnull=True).order_by("since", "pk")[:MAX_ITEMS]


@attention_source(8, only_if=lambda _now: BreakerState.objects.filter(state="open"))
def list_open_breakers(now: datetime) -> Sequence[AttentionItem]:
    """List the open breakers that need attention, those of critical dependencies first."""
    return [
        AttentionItem(
            kind="breaker_open",
            severity="critical" if _is_critical(one) else "warning",
            title=f"The breaker of {names.format_name(one.name)} is open",
            detail=f"Open in {names.format_instances(one.open, one.fleet)}. "
            f"Criticality: {one.criticality}.",
            path=message_facts.dependency_path(one.caller, one.callee),
            since=min(one.since or now, now),
            changes_path=f"{message_facts.dependency_path(one.caller, one.callee)}#changes",
            resource=names.dependency_resource(one.caller, one.callee),
        )
        for one in sorted(
            _open_weighty(now), key=lambda one: (not _is_critical(one), one.since or now)
        )
    ][:MAX_ITEMS]


@attention_rows(36, live_overrides)
def list_overrides(now: datetime, found: Sequence[Override]) -> Sequence[AttentionItem]:
    """List the live overrides, with remarks on those that are old, end soon or aren't applied.

    A reset is listed only if not all instances apply it, since it forces nothing afterwards.
    """
    versions = [(one.dependency.caller, one.version) for one in found]
    acknowledged = overrides.list_acknowledgements(versions, now)
    items = []
    for one, by in zip(found, acknowledged, strict=True):
        remarks = _override_remarks(one, by, now)
        if one.mode == Override.Mode.RESET and not remarks:
            continue
        is_applied = by.by_all or now - one.set_at < HEARD_BY_THEN
        is_calm = is_applied and now - one.set_at <= LONG
        items.append(
            AttentionItem(
                kind="override",
                severity="info" if is_calm and one.mode != Override.Mode.FORCED_OPEN else "warning",
                title=f"{one.dependency.label} is {MODES[one.mode][0].lower()}",
                detail=" ".join([*remarks, f"Set by {one.set_by}: {one.reason}"]),
                path=message_facts.page_path(one.dependency),
                since=min(one.set_at, now),
                due_at=one.expires_at if one.expires_at - now <= SOON else None,
                actions=(
                    AttentionAction(
                        "Remove override…",
                        f"{message_facts.page_path(one.dependency)}override/remove/",
                        "breakers:write",
                        "close",
                        authority=get_end_action(one.mode),
                    ),
                ),
                resource=one.dependency.resource,
            )
        )
    return items


def open_weighty_names(now: datetime) -> Collection[str]:
    """Return the names (`core->oracle`) of dependencies with an open breaker that needs attention.

    A breaker needs attention if its dependency's criticality is critical or high, or its callee is
    a service of this installation.
    """
    return {one.name for one in _open_weighty(now)}


@attention_rows(50, open_alarms)
def list_outages(now: datetime, found: Sequence[Alarm]) -> Sequence[AttentionItem]:
    """List ongoing outages of dependencies with an outage policy."""
    return [
        AttentionItem(
            kind="breaker_alarm",
            severity=one.severity,
            title=one.evidence.get("said") or f"{one.rule} of {one.subject}",
            detail=_outage_detail(one),
            path=message_facts.dependency_path(*names.split_name(one.subject) or ("", "")),
            since=min(one.since, now),
            resource=f"dependency:{one.subject}",
        )
        for one in found
    ]


@attention_rows(9, silent_probes)
def list_away_probes(now: datetime, found: Sequence[Probe]) -> Sequence[AttentionItem]:
    """List the services whose probes keep failing, and those that may not be probed."""
    return [
        AttentionItem(
            kind="probe_away",
            severity=_probe_severity(one),
            title=f"{one.service.name} {'does not respond' if one.is_away else 'is not probed'}",
            detail=f"{one.service.probe_url}: {one.error}",
            path="/breakers/infrastructure/",
            since=min(one.since or one.checked_at or now, now),
            resource=names.service_resource(one.service.slug),
        )
        for one in found
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
    remarks = []
    late = now - one.set_at >= HEARD_BY_THEN
    if late and not by.instances:
        remarks.append(
            f"No instance of {one.dependency.caller} is reporting, so none has confirmed it."
        )
    elif late and not by.by_all:
        named = ", ".join(by.stragglers[:NAMED])
        behind = by.instances - by.applied
        rest = f" and {behind - NAMED:,} more" if behind > NAMED else ""
        remarks.append(
            f"Applied by {names.format_instances(by.applied, by.instances)};"
            f" not yet by {named}{rest}."
        )
    if one.expires_at - now <= SOON < one.expires_at - one.set_at:
        remarks.append("It ends soon.")
    if now - one.set_at > LONG:
        remarks.append(f"Set {format_readable(now - one.set_at)} ago.")
    return remarks


def _outage_detail(one: Alarm) -> str:
    done, why = one.evidence.get("done"), one.evidence.get("why")
    if not done:
        return "Its outage policy acts if this continues."
    return f"Its outage policy acted: {done}. {why or ''}".strip()
