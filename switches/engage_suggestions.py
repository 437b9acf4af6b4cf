"""Suggestions for the engage form: likely switches, reasons, and equal keys of other scopes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max
from django.utils import timezone

from controlplane.core.errors import InvalidInput
from controlplane.core.instances.exports import load_check_rates
from controlplane.core.instances.queries import list_callers

from .blast import RECENT
from .models import Episode, Switch
from .scopes import GLOBAL, GLOBAL_ID, keyed_scopes
from .services.registration import find_switch

MAX_SHOWN = 6
STOPPED_WITHIN = timedelta(days=90)
MAX_REPEATED_REASON_LENGTH = 300  # Characters that fit on a button.
REASON_TEMPLATES = (
    "Errors or timeouts seen at {at}; cause not found yet",
    "Wrong answers or wrong amounts, reported by users at {at}",
    "Load or spending runs away, seen at {at}",
    "Data exposure or abuse suspected at {at}",
)
STOPPED_BEFORE = "stopped before"
MAX_CHECKED = 20


@dataclass(frozen=True)
class Suggestion:
    """A released switch and why it is suggested."""

    switch: Switch
    why: str


@dataclass(frozen=True)
class SimilarKey:
    """A switch with the same key in another scope, and its callers in the last hour."""

    id: str
    scope: str
    key: str
    callers: int
    calls_per_second: float


def suggest_for_form(asked: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Return template context for the engage form; `asked` has the form's initial values.

    Without a key, `likely` lists switches. With a key, `prepared` lists reasons, unless the switch
    is global, invalid, engaged or ramping, or a reason is given.
    """
    scope, key = asked["scope"], asked["key"]
    if not key:
        return {"likely": list_likely_switches(now)}
    try:
        switch = find_switch(scope, key)
    except InvalidInput:
        return {}
    if scope == GLOBAL.name or asked["reason"] or (switch and switch.episode):
        return {}
    return {"prepared": prepare_reasons(f"{scope}:{key}", now)}


def list_likely_switches(now: datetime) -> Sequence[Suggestion]:
    """Return switches checked within the last hour, busiest first, then recently engaged ones.

    Undone episodes don't count. The global switch is never suggested.
    """
    stopped = (
        Episode.objects.filter(engaged_at__gte=now - STOPPED_WITHIN)
        .exclude(switch__scope=GLOBAL.name)
        .exclude(ended_how=Episode.End.UNDONE)
    )
    latest = stopped.values("switch_id").annotate(last=Max("engaged_at")).order_by("-last")
    before = [one["switch_id"] for one in latest[: 3 * MAX_SHOWN]]
    why = dict.fromkeys(_find_checked_switches(now), "checked now")
    for switch_id in before:
        why[switch_id] = (
            f"{why[switch_id]}, {STOPPED_BEFORE}" if switch_id in why else STOPPED_BEFORE
        )
    switches = Switch.objects.with_open_episode().in_bulk(list(why))
    suggestions = [
        Suggestion(switches.get(one) or _build_unregistered(one), reason)
        for one, reason in why.items()
        if not one.startswith(f"{GLOBAL.name}:")
    ]
    return [one for one in suggestions if one.switch.episode is None][:MAX_SHOWN]


def prepare_reasons(switch_id: str, now: datetime) -> Sequence[str]:
    local = timezone.localtime(now)
    reasons = [reason.format(at=f"{local:%H:%M %Z}") for reason in REASON_TEMPLATES]
    last = Episode.objects.filter(switch_id=switch_id).order_by("-id").first()
    if (
        last
        and now - last.engaged_at < STOPPED_WITHIN
        and len(last.reason) <= MAX_REPEATED_REASON_LENGTH
    ):
        reasons.insert(0, f"Again: {last.reason.removeprefix('Again: ')}")
    return reasons


def find_similar_keys(
    switch_id: str, now: datetime, *, known: bool = False
) -> Sequence[SimilarKey] | None:
    """Return switches with the same key in other scopes, or None if this switch is in use.

    A switch is in use if it was checked within the last hour. If others are in use, return those,
    busiest first. Otherwise return the registered others, or an empty list if this switch is
    registered; `known` states that it is. For `global:all`, return None if any switch is in use,
    else an empty list.
    """
    if switch_id == GLOBAL_ID:
        return None if list_callers(None, now, within=RECENT, most=1)[1] else []
    key = switch_id.partition(":")[2]
    ids = [f"{scope.name}:{key}" for scope in keyed_scopes()]
    checks = load_check_rates(now - RECENT, now, ids)
    if switch_id in checks:
        return None
    if checks:
        found = [_similar_key(one, rates_of) for one, rates_of in checks.items()]
        return sorted(found, key=lambda one: -one.calls_per_second)
    if known:
        return []
    present = set(Switch.objects.filter(pk__in=ids).values_list("pk", flat=True))
    return [] if switch_id in present else [_similar_key(one, []) for one in ids if one in present]


def _find_checked_switches(now: datetime) -> Sequence[str]:
    rates = load_check_rates(now - RECENT, now)
    per_second = {switch_id: sum(found) for switch_id, found in rates.items()}
    busiest = sorted(per_second, key=lambda one: (-per_second[one], one))
    return busiest[:MAX_CHECKED]


def _build_unregistered(switch_id: str) -> Switch:
    scope, _, key = switch_id.partition(":")
    return Switch(id=switch_id, scope=scope, key=key)


def _similar_key(switch_id: str, per_second: Sequence[float]) -> SimilarKey:
    scope, _, key = switch_id.partition(":")
    return SimilarKey(switch_id, scope, key, len(per_second), sum(per_second))
