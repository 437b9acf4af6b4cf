"""What rules would have said: each tick of a span judged by the counters as they are kept now.

The same code judges as for the beat; nothing is written, and nobody is told.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core.actors import Actor
from controlplane.core.errors import TooManyRequests
from slo.arithmetic import hysteresis
from slo.arithmetic.evaluate import FIRING, UNKNOWN, Evaluation, evaluate
from slo.arithmetic.hysteresis import AlertKey, FiringRule, OpenAlert
from slo.arithmetic.minutes import last_ended, window_minutes
from slo.arithmetic.objective import BurnRateRule, Objective
from slo.counters import reader
from slo.evaluation import objective_loader
from slo.models import Sli, Slo

MINUTE = timedelta(minutes=1)
MAX_RUNNING = 2
"""Most concurrent backtests in a process: each takes seconds of CPU."""
RETRY_AFTER_SECONDS = 5

_running: set[str] = set()
_lock = threading.Lock()


@contextmanager
def limit_backtests(actor: Actor) -> Iterator[None]:
    """Limit backtests to one per person or token, and :data:`MAX_RUNNING` in this process.

    Raises :class:`TooManyRequests` above that.
    """
    name = actor.identity
    with _lock:
        if name in _running or len(_running) >= MAX_RUNNING:
            said = "You already have a backtest running; try again when it is done."
            if name not in _running:
                said = "Others are running backtests right now; try again in a moment."
            raise TooManyRequests(said, retry_after=RETRY_AFTER_SECONDS)
        _running.add(name)
    try:
        yield
    finally:
        with _lock:
            _running.discard(name)


@dataclass(frozen=True)
class BacktestAlert:
    """An alert that would have been: when it would have opened and resolved (null: not by the end
    of the span), and the worst burn rates seen meanwhile, by window."""

    rule: BurnRateRule
    opened_at: datetime
    resolved_at: datetime | None
    worst: dict[str, float]


def evaluate_ticks(
    slo: Slo,
    *,
    start: datetime,
    end: datetime,
    step: timedelta = MINUTE,
    objective: Objective | None = None,
) -> Iterator[tuple[datetime, Evaluation]]:
    """How the SLO stood at each tick from `start` to `end`, both included; by another objective,
    if one is given. At a tick between two minutes it is the last one that had ended.

    One that nothing is known of yet (its id is None) is unknown throughout.
    """
    by = objective or objective_loader.load_objective(slo, load_excluded_spans(slo, start))
    longest = max([by.period, *(window_minutes(one) for one in by.windows)])
    sli = Sli.objects.filter(slo=slo).first() if slo.pk else None
    history = reader.load_history(
        sli.pk if sli else 0, last_ended(start) - longest, last_ended(end)
    )
    at = start
    while at <= end:
        yield at, evaluate(by, last_ended(at), history.at, history.first)
        at += step


def load_excluded_spans(slo: Slo, start: datetime) -> Sequence[tuple[int, int]]:
    """What does not count of the periods that end after `start`."""
    if not slo.pk:
        return ()
    since = start - timedelta(days=slo.window_days)
    return objective_loader.load_exclusions([slo.pk], since).get(slo.pk, ())


def collect_alerts(found: Iterable[tuple[datetime, Evaluation]]) -> list[BacktestAlert]:
    """The alerts that these ticks would have opened, in order, by the rules of alerts."""
    fired: list[BacktestAlert] = []
    standing: dict[AlertKey, tuple[int, datetime]] = {}
    before: datetime | None = None
    for at, evaluation in found:
        rules = {(one.rule.key, ""): one for one in evaluation.rules}
        moved = hysteresis.plan_changes(
            [_firing(one.rule) for one in rules.values() if one.state == FIRING],
            {key for key, one in rules.items() if one.state == UNKNOWN},
            [OpenAlert(place, key, since) for key, (place, since) in standing.items()],
            at=at,
            before=before or at,
        )
        for new in moved.begin:
            fired.append(BacktestAlert(rules[new.key].rule, at, None, {}))
            standing[new.key] = (len(fired) - 1, at)
        for place, still in moved.go_on.items():
            standing[still.key] = (place, at)
        for key, (place, since) in list(standing.items()):
            standing[key] = (place, moved.put_off.get(place, since))
            if place in moved.end:
                one = fired[place]
                fired[place] = BacktestAlert(one.rule, one.opened_at, at, one.worst)
                del standing[key]
            else:
                _raise_worst(fired[place], evaluation)
        before = at
    return fired


def _raise_worst(one: BacktestAlert, evaluation: Evaluation) -> None:
    for window in (one.rule.long, one.rule.short):
        rate = evaluation.burn_rates[window]
        if rate is not None:
            one.worst[window] = max(rate, one.worst.get(window, rate))


def _firing(rule: BurnRateRule) -> FiringRule:
    return FiringRule(rule.key, "", "", "", rule.severity, "", "")
