"""Rules tried on what was counted: how often each would have called somebody, and for how long,
beside what the present ones would have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slo.arithmetic.evaluate import (
    OK,
    UNKNOWN,
    Evaluation,
    RuleEvaluation,
    evaluate,
    is_above,
    unknown_evaluation,
)
from slo.arithmetic.minutes import due_minute, end_of, last_ended
from slo.arithmetic.objective import PAGE, TICKET, BurnRateRule, Objective
from slo.arithmetic.windows import measure_window, merge_spans, window_minutes
from slo.counters import reader
from slo.counters.reader import CounterHistory
from slo.evaluation import objective_loader
from slo.models import Sli, Slo

from . import replay
from .replay import BacktestAlert


@dataclass(frozen=True)
class CallTotals:
    """How often somebody would have been called, and for how long in all."""

    times: int
    lasted: timedelta


@dataclass(frozen=True)
class RuleTrial:
    """What a rule would have done; each firing has its place in the span, in percent."""

    rule: BurnRateRule
    fired: tuple[BacktestAlert, ...]
    places: tuple[tuple[float, float], ...]
    lasted: timedelta


@dataclass(frozen=True)
class TrialResult:
    """From `since` to `until`. `known` is the share of minutes in which the rules
    could be judged."""

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
        """All of them, the latest first."""
        found = [one for trial in self.trials for one in trial.fired]
        return sorted(found, key=lambda one: one.opened_at, reverse=True)


def run_trials(slo: Slo, by: Objective, lasts: timedelta, now: datetime) -> TrialResult:
    """Try what `by` says over the last so long; what does not count stays out."""
    until = end_of(due_minute(now))
    sli = Sli.objects.filter(slo=slo).first()
    first = end_of(sli.first) if sli and sli.first is not None else None
    since = max(until - lasts, first) if first else until
    excluded = tuple(replay.load_excluded_spans(slo, since))
    by, present = replace(by, excluded=excluded), objective_loader.load_objective(slo, excluded)
    history = _load_history(sli, (by, present), since, until)
    ticks = list(evaluate_minutes(by, history, since, until))
    fired = replay.collect_alerts(ticks)
    before = None
    if present != by:
        before = replay.collect_alerts(evaluate_minutes(present, history, since, until))
    return TrialResult(
        since=since,
        until=until,
        trials=tuple(_make_trial(rule, fired, since, until) for rule in by.rules),
        pages=_total_calls(fired, PAGE, until),
        tickets=_total_calls(fired, TICKET, until),
        pages_now=None if before is None else _total_calls(before, PAGE, until),
        tickets_now=None if before is None else _total_calls(before, TICKET, until),
        known=_known_share(ticks),
        counted_since=first,
    )


def _load_history(
    sli: Sli | None, objectives: Sequence[Objective], since: datetime, until: datetime
) -> CounterHistory:
    longest = max(window_minutes(one) for by in objectives for one in by.windows)
    back = max(longest, *(by.period for by in objectives))
    return reader.load_history(sli.pk if sli else 0, last_ended(since) - back, last_ended(until))


def evaluate_minutes(
    by: Objective, history: CounterHistory, since: datetime, until: datetime
) -> Iterator[tuple[datetime, Evaluation]]:
    """As the backtest has them, but minutes in which every short window is known to be quiet are
    not looked at any further: no rule fires in them, whatever the long ones say."""
    shorts = {(window_minutes(rule.short), rule.burn_rate) for rule in by.rules}
    rules = tuple(RuleEvaluation(rule, OK) for rule in by.rules)
    quiet = replace(unknown_evaluation(by), state=OK, rules=rules)
    excluded, first = merge_spans(by.excluded), history.first

    def is_quiet(minute: int) -> bool:
        if first is None or minute < first:
            return False
        seen = (
            (measure_window(long, minute, history.at, excluded), limit) for long, limit in shorts
        )
        return all(
            one.is_known(by.min_events) and not is_above(one, by, limit) for one, limit in seen
        )

    for minute in range(last_ended(since), last_ended(until) + 1):
        found = quiet if is_quiet(minute) else evaluate(by, minute, history.at, first)
        yield end_of(minute), found


def _make_trial(
    rule: BurnRateRule, fired: Sequence[BacktestAlert], since: datetime, until: datetime
) -> RuleTrial:
    own = tuple(one for one in fired if one.rule == rule)
    whole = max(until - since, replay.MINUTE)
    return RuleTrial(
        rule=rule,
        fired=own,
        places=tuple(
            (
                round((one.opened_at - since) / whole * 100, 3),
                round(
                    max((one.resolved_at or until) - one.opened_at, whole / 160) / whole * 100, 3
                ),
            )
            for one in own
        ),
        lasted=_total_duration(own, until),
    )


def _place(
    one: BacktestAlert, since: datetime, until: datetime, whole: timedelta
) -> tuple[float, float]:
    """Where it begins and how wide it is drawn, in percent; the shortest can still be seen."""
    lasted = max((one.resolved_at or until) - one.opened_at, whole / 160)
    return round((one.opened_at - since) / whole * 100, 3), round(lasted / whole * 100, 3)


def _total_calls(fired: Sequence[BacktestAlert], severity: str, until: datetime) -> CallTotals:
    own = [one for one in fired if one.rule.severity == severity]
    return CallTotals(len(own), _total_duration(own, until))


def _total_duration(fired: Sequence[BacktestAlert], until: datetime) -> timedelta:
    return sum(((one.resolved_at or until) - one.opened_at for one in fired), timedelta())


def _known_share(ticks: Sequence[tuple[datetime, Evaluation]]) -> float:
    known = sum(one.state != UNKNOWN for _, one in ticks)
    return known / len(ticks) if ticks else 0.0
