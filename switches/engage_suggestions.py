"""Suggestions for the engage form: likely switches, reasons, and equal keys of other scopes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max
from django.utils import timezone

from controlplane.core import reasons
from controlplane.core.errors import InvalidInput
from controlplane.core.instances.checked_keys import (
    CHECKED_WITHIN,
    CheckedKey,
    load_checked_keys,
    rank_keys,
)
from controlplane.core.instances.queries import list_callers

from .board import make_unregistered
from .check_descriptions import describe_checks
from .models import Episode, Switch
from .scopes import GLOBAL, GLOBAL_ID, keyed_scopes
from .services.registration import find_switch

MAX_SHOWN = 6
STOPPED_WITHIN = timedelta(days=90)
MAX_REPEATED_REASON_LENGTH = 300  # Characters that fit on a button.
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


def suggest_for_form(initial: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Return suggestions for the engage form, whose initial values are in `initial`.

    Without a key, `likely` lists switches to choose from. With the key of a released switch and
    without a reason, `prepared` lists reasons to choose from; never for the global switch.
    """
    scope, key = initial["scope"], initial["key"]
    if not key:
        return {"likely": list_likely_switches(now)}
    try:
        switch = find_switch(scope, key)
    except InvalidInput:
        return {}
    if scope == GLOBAL.name or initial["reason"] or (switch and switch.episode):
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
    before = [row["switch_id"] for row in latest[: 3 * MAX_SHOWN]]
    open_episodes = Episode.objects.filter(ended_at__isnull=True)
    engaged = {*open_episodes.values_list("switch_id", flat=True), GLOBAL_ID}
    busiest = [key for key in rank_keys(now) if key not in engaged]
    checked = load_checked_keys(busiest[:MAX_CHECKED], now)
    why = {pk: describe_checks(key, now) for pk, key in checked.items() if key.is_checked}
    for switch_id in before:
        why[switch_id] = (
            f"{why[switch_id]}; {STOPPED_BEFORE}" if switch_id in why else STOPPED_BEFORE
        )
    switches = Switch.objects.with_open_episode().in_bulk(list(why))
    suggestions = [
        Suggestion(switches.get(pk) or make_unregistered(pk), reason) for pk, reason in why.items()
    ]
    return [found for found in suggestions if found.switch.episode is None][:MAX_SHOWN]


def find_checked_feature(now: datetime) -> Suggestion | None:
    """Return a feature that was checked within the last hour, as an unregistered switch.

    It is the busiest one as far as is known: services report at different times, so in the first
    minutes others may be busier. A feature reaches fewer users than a segment, so it is the better
    switch for a first test.
    """
    features = [key for key in rank_keys(now) if key.startswith("feature:")][:MAX_CHECKED]
    for switch_id, key in load_checked_keys(features, now).items():
        if key.is_checked:
            return Suggestion(make_unregistered(switch_id), describe_checks(key, now))
    return None


def prepare_reasons(switch_id: str, now: datetime) -> Sequence[str]:
    local = timezone.localtime(now)
    prepared = [reason.format(at=f"{local:%H:%M %Z}") for reason in reasons.TEMPLATES]
    last = Episode.objects.filter(switch_id=switch_id).order_by("-id").first()
    if (
        last
        and now - last.engaged_at < STOPPED_WITHIN
        and len(last.reason) <= MAX_REPEATED_REASON_LENGTH
    ):
        prepared.insert(0, f"Again: {last.reason.removeprefix('Again: ')}")
    return prepared


def find_similar_keys(
    switch_id: str, now: datetime, *, known: bool = False
) -> Sequence[SimilarKey] | None:
    """Return switches of other scopes with the same key, which the caller may mean instead.

    Return None if this switch was checked within the last hour. Otherwise return the others that
    were checked, busiest first. If none was, return the registered others, or an empty list if this
    switch is registered; `known` says that it is, and saves a query.

    For `global:all`, return None if any switch was checked, else an empty list.
    """
    if switch_id == GLOBAL_ID:
        return None if list_callers(None, now, within=CHECKED_WITHIN, most=1)[1] else []
    key = switch_id.partition(":")[2]
    ids = [f"{scope.name}:{key}" for scope in keyed_scopes()]
    keys = load_checked_keys(ids, now)
    if keys[switch_id].is_checked:
        return None
    if checked := [_build_similar_key(key) for key in keys.values() if key.is_checked]:
        return sorted(checked, key=lambda other: -other.calls_per_second)
    if known:
        return []
    present = set(Switch.objects.filter(pk__in=ids).values_list("pk", flat=True))
    return [] if switch_id in present else [_build_similar_key(keys[pk]) for pk in sorted(present)]


def _build_similar_key(found: CheckedKey) -> SimilarKey:
    scope, _, key = found.switch.partition(":")
    return SimilarKey(found.switch, scope, key, found.callers, found.calls_per_second)
