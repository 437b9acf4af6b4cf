"""Suggestion of switches with the same key in other scopes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.core.instances.exports import load_check_rates
from controlplane.core.instances.queries import list_callers

from .blast import RECENT
from .models import Switch
from .scopes import GLOBAL_ID, keyed_scopes


@dataclass(frozen=True)
class SimilarKey:
    """A switch with the same key in another scope, and its callers in the last hour."""

    id: str
    scope: str
    key: str
    callers: int
    calls_per_second: float


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


def _similar_key(switch_id: str, per_second: Sequence[float]) -> SimilarKey:
    scope, _, key = switch_id.partition(":")
    return SimilarKey(switch_id, scope, key, len(per_second), sum(per_second))
