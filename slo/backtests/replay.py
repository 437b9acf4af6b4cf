"""Replay of stored counters: evaluations at past times, and the alerts they would have opened."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controlplane.core.actors import Actor
from controlplane.core.errors import TooManyRequests
from slo.arithmetic import hysteresis
from slo.arithmetic.evaluate import (
    FIRING,
    OK,
    UNKNOWN,
    Evaluation,
    RuleEvaluation,
    evaluate,
    is_above,
    unknown_evaluation,
)
from slo.arithmetic.hysteresis import AlertKey, FiringRule, OpenAlert
from slo.arithmetic.minutes import MINUTE, end_of, last_ended, window_minutes
from slo.arithmetic.objective import BurnRateRule, Objective
from slo.arithmetic.windows import measure_window, merge_spans
from slo.counters import reader
from slo.counters.reader import CounterHistory
from slo.evaluation import objective_loader
from slo.models import Sli, Slo

MAX_RUNNING = 2
"""Most concurrent backtests in a process, as each takes seconds of CPU."""
RETRY_AFTER_SECONDS = 5

_running: set[str] = set()
_lock = threading.Lock()


@contextmanager
def limit_backtests(actor: Actor) -> Iterator[None]:
    """Context manager around one backtest, which counts as running during the block.

    Raise :class:`TooManyRequests` if the actor, or too many others, are running one.
    """
    name = actor.identity
    with _lock:
        if name in _running or len(_running) >= MAX_RUNNING:
            message = "You already have a backtest running. Try again when it is done."
            if name not in _running:
                message = "Other backtests are running. Try again in a moment."
            raise TooManyRequests(message, retry_after=RETRY_AFTER_SECONDS)
        _running.add(name)
    try:
        yield
    finally:
        with _lock:
            _running.discard(name)


@dataclass(frozen=True)
class BacktestAlert:
    """An alert that a rule would have opened.

    `resolved_at` is None if it would still be open at the end. `worst` are the highest burn rates
    while it was open, by window.
    """

    rule: BurnRateRule
    opened_at: datetime
    resolved_at: datetime | None
    worst: dict[str, float]

    def duration(self, end: datetime) -> timedelta:
        """Return how long the alert was open in a backtest that ends at `end`."""
        return (self.resolved_at or end) - self.opened_at


def load_history(
    sli: Sli | None, objectives: Iterable[Objective], start: datetime, end: datetime
) -> CounterHistory:
    """Return the counters of an SLI needed to evaluate objectives from `start` to `end`."""
    longest = max(
        max([one.period, *(window_minutes(name) for name in one.windows)]) for one in objectives
    )
    first, last = last_ended(start) - longest, last_ended(end)
    return reader.load_history(sli.pk if sli else 0, first, last)


def evaluate_ticks(
    slo: Slo,
    *,
    start: datetime,
    end: datetime,
    step: timedelta = MINUTE,
    objective: Objective | None = None,
) -> Iterator[tuple[datetime, Evaluation]]:
    """Yield the times from `start` to `end`, every `step`, each with the SLO's evaluation then.

    The SLO is evaluated at the last minute that had ended, by `objective` or, if None, by its own
    objective. An unsaved SLO has no counters and is unknown.
    """
    by = objective or objective_loader.load_objective(slo, load_excluded_spans(slo, start))
    sli = Sli.objects.filter(slo=slo).first() if slo.pk else None
    history = load_history(sli, [by], start, end).by_slices(by.slice_target)
    at = start
    while at <= end:
        yield at, evaluate(by, last_ended(at), history.counts_at, history.first)
        at += step


def evaluate_minutes(
    by: Objective, history: CounterHistory, start: datetime, end: datetime
) -> Iterator[tuple[datetime, Evaluation]]:
    """Yield the end of each minute and the SLO's evaluation then, faster than `evaluate_ticks`.

    The states of rules are exact. Burn rates are None in minutes in which no rule can fire, because
    all short windows are known and at most at their thresholds.
    """
    shorts = {(window_minutes(rule.short), rule.burn_rate) for rule in by.rules}
    rules = tuple(RuleEvaluation(rule, OK) for rule in by.rules)
    quiet = replace(unknown_evaluation(by), state=OK, rules=rules)
    excluded, first = merge_spans(by.excluded), history.first
    history = history.by_slices(by.slice_target)

    def is_quiet(minute: int) -> bool:
        if first is None or minute < first:
            return False
        windows = (
            (measure_window(length, minute, history.counts_at, excluded), limit)
            for length, limit in shorts
        )
        return all(
            one.is_known(by.min_events) and not is_above(one, by, limit) for one, limit in windows
        )

    for minute in range(last_ended(start), last_ended(end) + 1):
        found = quiet if is_quiet(minute) else evaluate(by, minute, history.counts_at, first)
        yield end_of(minute), found


def load_excluded_spans(slo: Slo, start: datetime) -> Sequence[tuple[int, int]]:
    """Return the excluded spans of an SLO that affect evaluations at or after `start`."""
    if not slo.pk:
        return ()
    since = start - timedelta(days=slo.window_days)
    return objective_loader.load_exclusions([slo.pk], since).get(slo.pk, ())


def collect_alerts(ticks: Iterable[tuple[datetime, Evaluation]]) -> list[BacktestAlert]:
    """Return the alerts that these evaluations would have opened, with the usual hysteresis."""
    alerts: list[BacktestAlert] = []
    open_alerts: dict[AlertKey, tuple[int, datetime]] = {}  # Index, and when its rule fired last.
    before: datetime | None = None
    for at, evaluation in ticks:
        rules = {(one.rule.key, ""): one for one in evaluation.rules}
        firing = [
            FiringRule(one.rule.key, "", "", "", one.rule.severity, "", "")
            for one in rules.values()
            if one.state == FIRING
        ]
        changes = hysteresis.plan_changes(
            firing,
            {key for key, one in rules.items() if one.state == UNKNOWN},
            [OpenAlert(index, key, fired_at) for key, (index, fired_at) in open_alerts.items()],
            at=at,
            before=before or at,
        )
        for rule in changes.opened:
            alerts.append(BacktestAlert(rules[rule.key].rule, at, None, {}))
            open_alerts[rule.key] = (len(alerts) - 1, at)
        for index, rule in changes.continued.items():
            open_alerts[rule.key] = (index, at)
        for key, (index, fired_at) in list(open_alerts.items()):
            open_alerts[key] = (index, changes.postponed.get(index, fired_at))
            alert = alerts[index]
            if index in changes.resolved:
                alerts[index] = replace(alert, resolved_at=at)
                del open_alerts[key]
                continue
            for window in (alert.rule.long, alert.rule.short):
                if (rate := evaluation.burn_rates[window]) is not None:
                    alert.worst[window] = max(rate, alert.worst.get(window, rate))
        before = at
    return alerts
