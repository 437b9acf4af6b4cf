"""Evaluation of threshold rules, which open alerts for measurements beyond their limit."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import connection, transaction

from controlplane.core.models import Tick
from controlplane.core.threshold_metrics import MetricQuery, MetricReading, find_metric
from slo.alerts import lifecycle
from slo.arithmetic.hysteresis import AlertKey, FiringRule
from slo.models import Alert, ThresholdRule

from . import rules

TICK = "slo.thresholds"
INTERVAL = timedelta(seconds=10)
REMOVED, OFF = "The rule was removed.", "The rule was turned off."
CHANGED = "The rule was changed."
CAUSE_CHANGED = "The cause has changed."
LOWERED_FROM = "lowered_from"
"""Fact of an alert that a person knowingly caused, of severity info: the severity of its rule."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class RuleResult:
    """The result of evaluating a threshold rule: the readings for which it fires or is unknown.

    `ended` are the readings of subjects that will have no more figures. `error` is set if the
    metric could not be read.
    """

    firing: tuple[MetricReading, ...] = ()
    unknown: tuple[MetricReading, ...] = ()
    ended: tuple[MetricReading, ...] = ()
    error: str = ""


@transaction.atomic
def evaluate_rules(now: datetime) -> int:
    """Evaluate the enabled threshold rules; return how many alerts opened or resolved.

    Do nothing and return 0 if another process is evaluating them.
    """
    if not lifecycle.try_lock(lifecycle.THRESHOLDS_LOCK):
        return 0
    last = Tick.objects.filter(name=TICK).values_list("ran_at", flat=True).first()
    rows = Alert.objects.filter(kind=Alert.Kind.THRESHOLD, resolved_at__isnull=True)
    values = rows.values_list("rule", "subject", "severity", "facts")
    severities = {
        (name, subject): facts.get(LOWERED_FROM, severity)
        for name, subject, severity, facts in values
    }
    lowered = {(name, subject) for name, subject, _, facts in values if LOWERED_FROM in facts}
    gone = _find_gone(severities)
    firing: list[FiringRule] = []
    unknown: set[AlertKey] = set()
    for rule in ThresholdRule.objects.filter(is_enabled=True).order_by("pk"):
        open_subjects = {subject for name, subject in severities if name == rule.name}
        result = evaluate_rule(rule, now, since=last, standing=open_subjects)
        firing += [_to_firing_rule(rule, one) for one in result.firing]
        # The present cause isn't a person's action any more: the alert opens anew.
        gone |= {
            (rule.name, one.subject): CAUSE_CHANGED
            for one in result.firing
            if not one.acknowledged_by and (rule.name, one.subject) in lowered
        }
        gone |= {(rule.name, one.subject): one.ended for one in result.ended}
        subjects = open_subjects if result.error else {one.subject for one in result.unknown}
        unknown.update((rule.name, subject) for subject in subjects)
    changed = lifecycle.update_alerts(
        kind=Alert.Kind.THRESHOLD,
        firing=firing,
        unknown=unknown - gone.keys(),
        gone=gone,
        before=last or now - INTERVAL,
        now=now,
    )
    lifecycle.notify_and_act(Alert.Kind.THRESHOLD, now)
    return changed


def evaluate_rule(
    rule: ThresholdRule,
    now: datetime,
    *,
    since: datetime | None = None,
    standing: Collection[str] = (),
) -> RuleResult:
    """Return the evaluation of one rule, without writing to the database.

    A failure to read the metric is logged, and returned as `error`. `since`, the time of the last
    evaluation, and `standing`, the subjects of the rule's open alerts, are passed to the metric.
    """
    known = find_metric(rule.metric)
    if known is None:
        return RuleResult(error="This is not measured on this installation.")
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
        return RuleResult(error=f"{type(error).__name__}: {error}")
    firing, unknown, ended = [], [], []
    for one in readings:
        if one.ended:
            ended.append(one)
        elif one.beyond and one.is_fresh and one.samples >= rule.min_events:
            firing.append(one)
        elif one.beyond is not False:
            # Few or old events beyond the limit open no alert, but don't resolve one either.
            unknown.append(one)
    return RuleResult(tuple(firing), tuple(unknown), tuple(ended))


def _to_firing_rule(rule: ThresholdRule, one: MetricReading) -> FiringRule:
    more = {"runbook": rule.runbook_url} if rule.runbook_url else {}
    if one.acknowledged_by:
        more[LOWERED_FROM] = rule.severity
    return FiringRule(
        rule=rule.name,
        subject=one.subject,
        service=one.service,
        severity="info" if one.acknowledged_by else rule.severity,
        label="",
        summary=one.summary,
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
        facts={**one.facts, **more},
    )


def _find_gone(severities: Mapping[AlertKey, str]) -> dict[AlertKey, str]:
    """Return the open alerts whose rule was removed, disabled or changed, with the reason.

    `severities` are those of the rules when the alerts opened.
    """
    present = {one.name: one for one in ThresholdRule.objects.all()}
    found: dict[AlertKey, str] = {}
    for (name, subject), severity in severities.items():
        rule = present.get(name)
        if rule is None:
            found[name, subject] = REMOVED
        elif not rule.is_enabled:
            found[name, subject] = OFF
        elif rule.severity != severity:
            found[name, subject] = CHANGED
    return found
