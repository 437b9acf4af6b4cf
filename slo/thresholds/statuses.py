"""Statuses of threshold rules for people: open alerts, and the result of an evaluation now."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count

from controlplane.core.canonical import timestamp
from controlplane.core.threshold_metrics import MetricReading
from slo.arithmetic.evaluate import FIRING, OK, UNKNOWN
from slo.models import Alert, ThresholdRule

from . import evaluation, rules

MAX_SHOWN = 20
CACHED_FOR = timedelta(seconds=10)
"""Time for which a process caches the status of a rule."""
OFF = "off"


@dataclass(frozen=True)
class ThresholdStatus:
    """A rule, its `state` (`ok`, `firing`, `unknown` or `off`) and its number of open alerts.

    `firing` and `unknown` are the first readings for which the rule fires or is unknown;
    `firing_total` and `unknown_total` count all. `why` is the error of a failed evaluation.
    """

    rule: ThresholdRule
    state: str
    open: int = 0
    firing: tuple[MetricReading, ...] = ()
    unknown: tuple[MetricReading, ...] = ()
    firing_total: int = 0
    unknown_total: int = 0
    why: str = ""

    @property
    def sentence(self) -> str:
        return rules.describe_rule(self.rule)


def rule_resources(found: Sequence[ThresholdRule]) -> list[dict[str, Any]]:
    """Return threshold rules as the API shows them; their open alerts are counted in one query."""
    counts = count_open_alerts([one.name for one in found])
    return [
        {
            "name": rule.name,
            **rules.to_document(rule),
            "built_in": rule.built_in,
            "version": rule.version,
            "changed_at": timestamp(rule.changed_at),
            "sentence": rules.describe_rule(rule),
            "open_alerts": counts.get(rule.name, 0),
        }
        for rule in found
    ]


def count_open_alerts(names: Sequence[str]) -> dict[str, int]:
    rows = Alert.objects.filter(kind=Alert.Kind.THRESHOLD, resolved_at__isnull=True)
    counts = rows.filter(rule__in=names).order_by().values_list("rule").annotate(Count("pk"))
    return dict(counts)


def load_statuses(found: Sequence[ThresholdRule], now: datetime) -> list[ThresholdStatus]:
    """Return the statuses of rules, at most ten seconds old.

    Rules are evaluated without opening alerts, by one thread of the process at a time.
    """
    counts = count_open_alerts([one.name for one in found])
    with _cache_lock:
        for key in [key for key, (at, _) in _cache.items() if abs(now - at) >= CACHED_FOR]:
            del _cache[key]
        for one in found:
            if (one.pk, one.version) not in _cache:
                _cache[one.pk, one.version] = (now, compute_status(one, now))
        cached = [_cache[one.pk, one.version][1] for one in found]
    return [
        replace(status, rule=one, open=counts.get(one.name, 0))
        for one, status in zip(found, cached, strict=True)
    ]


_cache: dict[tuple[int, int], tuple[datetime, ThresholdStatus]] = {}
"""Cached statuses with the time of their evaluation, by rule id and version."""
_cache_lock = threading.Lock()


def compute_status(rule: ThresholdRule, now: datetime) -> ThresholdStatus:
    """Evaluate a rule, which may be unsaved, and return its status; open alerts are not counted."""
    if not rule.is_enabled:
        return ThresholdStatus(rule, OFF)
    result = evaluation.evaluate_rule(rule, now)
    if result.error:
        return ThresholdStatus(rule, UNKNOWN, why=result.error)
    return ThresholdStatus(
        rule,
        FIRING if result.firing else UNKNOWN if result.unknown else OK,
        firing=result.firing[:MAX_SHOWN],
        unknown=result.unknown[:MAX_SHOWN],
        firing_total=len(result.firing),
        unknown_total=len(result.unknown),
    )
