"""How threshold rules stand: what is open of each, and what each finds just now."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count

from controlplane.core.canonical import timestamp
from controlplane.core.threshold_metrics import Reading
from slo.arithmetic.evaluate import FIRING, OK, UNKNOWN
from slo.models import Alert, ThresholdRule

from . import evaluation, rules

MAX_SHOWN = 20
KEPT = timedelta(seconds=10)
"""As often as rules are looked at: so long what a process found is shown to all who ask it."""
OFF = "off"


@dataclass(frozen=True)
class Stands:
    """A rule, its `state` (`ok`, `firing`, `unknown` or `off`) and what is open of it. `firing` and
    `unknown` are the first of its readings, `why` is why it can't be judged."""

    rule: ThresholdRule
    state: str
    open: int
    firing: tuple[Reading, ...] = ()
    unknown: tuple[Reading, ...] = ()
    firing_total: int = 0
    unknown_total: int = 0
    why: str = ""

    @property
    def sentence(self) -> str:
        return rules.sentence(self.rule)


def resource(rule: ThresholdRule, open_alerts: int) -> dict[str, Any]:
    """A rule as the API shows it."""
    return {
        "name": rule.name,
        **rules.said(rule),
        "built_in": rule.built_in,
        "version": rule.version,
        "changed_at": timestamp(rule.changed_at),
        "sentence": rules.sentence(rule),
        "open_alerts": open_alerts,
    }


def resources(found: Sequence[ThresholdRule]) -> list[dict[str, Any]]:
    counts = open_alerts([one.name for one in found])
    return [resource(one, counts.get(one.name, 0)) for one in found]


def open_alerts(names: Sequence[str]) -> dict[str, int]:
    """How many alerts are open of these rules."""
    live = Alert.objects.filter(kind=Alert.Kind.THRESHOLD, resolved_at__isnull=True, rule__in=names)
    return dict(live.order_by().values_list("rule").annotate(Count("pk")))


def stand(found: Sequence[ThresholdRule], now: datetime) -> list[Stands]:
    """How these stand: each was looked at ten seconds ago at most, or is now by one for all who
    ask; nothing is written."""
    counts = open_alerts([one.name for one in found])
    with _one_looks:
        for key in [key for key, (at, _) in _seen.items() if abs(now - at) >= KEPT]:
            del _seen[key]
        stands = [_kept(one, now) for one in found]
    return [
        replace(kept, rule=one, open=counts.get(one.name, 0))
        for one, kept in zip(found, stands, strict=True)
    ]


def forget() -> None:
    """Look anew when next asked."""
    with _one_looks:
        _seen.clear()


_seen: dict[tuple[int, int], tuple[datetime, Stands]] = {}
"""How rules stood, and when; a rule that was changed is of another version."""
_one_looks = threading.Lock()


def _kept(rule: ThresholdRule, now: datetime) -> Stands:
    key = (rule.pk, rule.version)
    if key not in _seen:
        _seen[key] = (now, of(rule, now))
    return _seen[key][1]


def of(rule: ThresholdRule, now: datetime, open_now: int = 0) -> Stands:
    """How one stands; it need not be saved."""
    if not rule.is_enabled:
        return Stands(rule, OFF, open_now)
    seen = evaluation.see(rule, now)
    if seen.error:
        return Stands(rule, UNKNOWN, open_now, why=seen.error)
    state = FIRING if seen.firing else UNKNOWN if seen.unknown else OK
    return Stands(
        rule,
        state,
        open_now,
        firing=seen.firing[:MAX_SHOWN],
        unknown=seen.unknown[:MAX_SHOWN],
        firing_total=len(seen.firing),
        unknown_total=len(seen.unknown),
    )
