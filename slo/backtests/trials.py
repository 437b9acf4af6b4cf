"""Trials of burn-rate rules: how often and for how long each would have fired."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slo.arithmetic.evaluate import UNKNOWN
from slo.arithmetic.minutes import MINUTE, due_minute, end_of
from slo.arithmetic.objective import PAGE, TICKET, BurnRateRule, Objective
from slo.evaluation.objective_loader import load_objective
from slo.models import Sli, Slo

from . import replay
from .replay import BacktestAlert


@dataclass(frozen=True)
class CallTotals:
    times: int
    lasted: timedelta


@dataclass(frozen=True)
class RuleTrial:
    """The alerts that a rule would have opened; `lasted` is their total duration.

    `places` are the alerts' starts and lengths in percent of the trial's time, for drawing.
    """

    rule: BurnRateRule
    fired: tuple[BacktestAlert, ...]
    places: tuple[tuple[float, float], ...]
    lasted: timedelta


@dataclass(frozen=True)
class TrialResult:
    """The outcome of a trial of burn-rate rules on the history from `since` to `until`.

    `pages` and `tickets` are totals of the rules on trial. `pages_now` and `tickets_now` are those
    of the SLO's saved rules; None if these are the rules on trial. `known` is the share of minutes
    in which the SLO was not unknown.
    """

    since: datetime
    until: datetime
    trials: tuple[RuleTrial, ...]
    pages: CallTotals
    tickets: CallTotals
    pages_now: CallTotals | None
    tickets_now: CallTotals | None
    known: float
    counted_since: datetime | None

    @property
    def fired(self) -> list[BacktestAlert]:
        found = [one for trial in self.trials for one in trial.fired]
        return sorted(found, key=lambda one: one.opened_at, reverse=True)


def run_trials(slo: Slo, objective: Objective, duration: timedelta, now: datetime) -> TrialResult:
    """Try the rules of `objective`, and the saved ones, on the SLO's last `duration` of history."""
    until = end_of(due_minute(now))
    sli = Sli.objects.filter(slo=slo).first()
    first = end_of(sli.first) if sli and sli.first is not None else None
    since = max(until - duration, first) if first else until
    excluded = tuple(replay.load_excluded_spans(slo, since))
    objective, present = replace(objective, excluded=excluded), load_objective(slo, excluded)
    history = replay.load_history(sli, (objective, present), since, until)
    ticks = list(replay.evaluate_minutes(objective, history, since, until))
    alerts = replay.collect_alerts(ticks)
    before = None
    if present != objective:
        before = replay.collect_alerts(replay.evaluate_minutes(present, history, since, until))
    return TrialResult(
        since=since,
        until=until,
        trials=tuple(_make_trial(rule, alerts, since, until) for rule in objective.rules),
        pages=_total_calls(alerts, until, PAGE),
        tickets=_total_calls(alerts, until, TICKET),
        pages_now=None if before is None else _total_calls(before, until, PAGE),
        tickets_now=None if before is None else _total_calls(before, until, TICKET),
        known=sum(one.state != UNKNOWN for _, one in ticks) / len(ticks) if ticks else 0.0,
        counted_since=first,
    )


def _make_trial(
    rule: BurnRateRule, alerts: Sequence[BacktestAlert], since: datetime, until: datetime
) -> RuleTrial:
    own = [one for one in alerts if one.rule == rule]
    whole = max(until - since, MINUTE)

    def percent(part: timedelta) -> float:
        return round(part / whole * 100, 3)

    places = tuple(
        # Wide enough to be visible.
        (percent(one.opened_at - since), percent(max(one.duration(until), whole / 160)))
        for one in own
    )
    return RuleTrial(rule, tuple(own), places, _total_calls(own, until).lasted)


def _total_calls(
    alerts: Sequence[BacktestAlert], until: datetime, severity: str | None = None
) -> CallTotals:
    own = [one for one in alerts if severity in (None, one.rule.severity)]
    return CallTotals(len(own), sum((one.duration(until) for one in own), timedelta()))
