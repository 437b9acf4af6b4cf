"""Evaluation of threshold rules: readings beyond a limit open alerts."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from django.db import connection, transaction

from controlplane.core.models import Tick
from controlplane.core.threshold_metrics import MetricQuery, MetricReading, find_metric
from slo.alerts import lifecycle, locks
from slo.arithmetic.hysteresis import AlertKey, FiringRule
from slo.models import Alert, ThresholdRule

from . import rules

TICK = "slo.thresholds"
INTERVAL = timedelta(seconds=10)
UNMEASURED = "Nobody measures this here."
REMOVED, OFF, CHANGED = (
    "The rule was removed.",
    "The rule was turned off.",
    "The rule was changed.",
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class RuleResult:
    """The readings of a rule that fire, and those that are unknown.

    `error` is set if the rule could not be evaluated.
    """

    rule: ThresholdRule
    firing: tuple[MetricReading, ...] = ()
    unknown: tuple[MetricReading, ...] = ()
    error: str = ""


@dataclass
class _AlertInputs:
    firing: list[FiringRule] = field(default_factory=list)
    unknown: set[AlertKey] = field(default_factory=set)
    gone: dict[AlertKey, str] = field(default_factory=dict)


@transaction.atomic
def evaluate_rules(now: datetime) -> int:
    """Evaluate all rules now, and open and resolve alerts; return how many.

    Does nothing while another process evaluates.
    """
    if not locks.try_lock(locks.THRESHOLDS):
        return 0
    last = Tick.objects.filter(name=TICK).values_list("ran_at", flat=True).first()
    open_alerts = _load_open()
    found = _AlertInputs(gone=_find_gone(open_alerts))
    for rule in ThresholdRule.objects.filter(is_enabled=True).order_by("pk"):
        open_of_it = {subject for name, subject in open_alerts if name == rule.name}
        result = evaluate_rule(rule, now, since=last, standing=open_of_it)
        _collect(found, result, open_of_it)
    return lifecycle.update_and_notify(
        kind=Alert.Kind.THRESHOLD,
        firing=found.firing,
        unknown=found.unknown - found.gone.keys(),
        gone=found.gone,
        before=last or now - INTERVAL,
        now=now,
    )


def evaluate_rule(
    rule: ThresholdRule,
    now: datetime,
    *,
    since: datetime | None = None,
    standing: Collection[str] = (),
) -> RuleResult:
    """Evaluate one rule now, without writing. A failing metric is logged; other rules go on."""
    known = find_metric(rule.metric)
    if known is None:
        return RuleResult(rule, error=UNMEASURED)
    measure, part = known
    query = MetricQuery(
        statistic=rule.statistic,
        comparison=rule.comparison,
        limit=rule.value,
        window=rules.rule_window(rule),
        part=part,
        since=since,
        standing=standing,
    )
    try:
        with transaction.atomic():
            readings = list(measure.read(query, now))
    except Exception as error:
        if not connection.is_usable():
            raise
        log.exception("threshold.evaluation_failed", rule=rule.name)
        return RuleResult(rule, error=f"{type(error).__name__}: {error}")
    return RuleResult(rule, tuple(_firing(rule, readings)), tuple(_unknown(rule, readings)))


def _firing(rule: ThresholdRule, readings: Iterable[MetricReading]) -> Iterable[MetricReading]:
    return (
        one for one in readings if one.beyond and one.is_fresh and _has_enough_events(rule, one)
    )


def _unknown(rule: ThresholdRule, readings: Iterable[MetricReading]) -> Iterable[MetricReading]:
    """Yield readings that neither open nor resolve an alert.

    Beyond the limit, few events open no alert, but are no reason to resolve one.
    """
    for one in readings:
        unsure = one.beyond and not (one.is_fresh and _has_enough_events(rule, one))
        if one.beyond is None or unsure:
            yield one


def _has_enough_events(rule: ThresholdRule, one: MetricReading) -> bool:
    return one.samples >= rule.min_events


def _collect(found: _AlertInputs, result: RuleResult, open_of_it: Collection[str]) -> None:
    name = result.rule.name
    if result.error:
        found.unknown.update((name, subject) for subject in open_of_it)
        return
    found.unknown.update((name, one.subject) for one in result.unknown)
    found.firing += [
        _to_firing_rule(result.rule, one)
        for one in result.firing
        if (name, one.subject) not in found.gone
    ]


def _to_firing_rule(rule: ThresholdRule, one: MetricReading) -> FiringRule:
    runbook = {"runbook": rule.runbook_url} if rule.runbook_url else {}
    return FiringRule(
        rule=rule.name,
        subject=one.subject,
        service=one.service,
        severity=rule.severity,
        label="",
        said=one.said,
        path=one.path,
        evidence={
            **one.evidence,
            "value": one.value,
            "limit": rule.value,
            "comparison": rule.comparison,
            "samples": one.samples,
        },
        threshold_id=rule.pk,
        acknowledged_by=one.acknowledged_by,
        thread=one.thread,
        facts={**one.facts, **runbook},
    )


def _load_open() -> dict[AlertKey, str]:
    """Return the severity of open alerts, by rule and subject."""
    rows = Alert.objects.filter(kind=Alert.Kind.THRESHOLD, resolved_at__isnull=True)
    found = rows.values_list("rule", "subject", "severity")
    return {(rule, subject): severity for rule, subject, severity in found}


def _find_gone(open_alerts: Mapping[AlertKey, str]) -> dict[AlertKey, str]:
    """Return alerts whose rule is gone, with the reason; a new severity opens a new alert."""
    present = {one.name: one for one in ThresholdRule.objects.all()}
    found: dict[AlertKey, str] = {}
    for (name, subject), severity in open_alerts.items():
        rule = present.get(name)
        if rule is None:
            found[name, subject] = REMOVED
        elif not rule.is_enabled:
            found[name, subject] = OFF
        elif rule.severity != severity:
            found[name, subject] = CHANGED
    return found
