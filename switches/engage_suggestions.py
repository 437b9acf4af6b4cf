"""Suggestions for the engage form: likely switches and reason templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max
from django.utils import timezone

from controlplane.core.errors import InvalidInput
from controlplane.core.instances.exports import load_check_rates

from .blast import RECENT
from .models import Episode, Switch
from .scopes import GLOBAL
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


def _find_checked_switches(now: datetime) -> Sequence[str]:
    rates = load_check_rates(now - RECENT, now)
    per_second = {switch_id: sum(found) for switch_id, found in rates.items()}
    busiest = sorted(per_second, key=lambda one: (-per_second[one], one))
    return busiest[:MAX_CHECKED]


def _build_unregistered(switch_id: str) -> Switch:
    scope, _, key = switch_id.partition(":")
    return Switch(id=switch_id, scope=scope, key=key)
