"""Rules tried on what was counted: how often each would have called somebody, and for how long,
beside what the present ones would have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slo.arithmetic.evaluate import OK, UNKNOWN, Evaluation, Judged, evaluate, is_above, unknown
from slo.arithmetic.minutes import end_of, last_ended
from slo.arithmetic.objective import PAGE, TICKET, Objective, Rule
from slo.arithmetic.windows import length, merged, window
from slo.counters import reader
from slo.counters.reader import History
from slo.evaluation import objective_loader
from slo.evaluation.status import judged_at
from slo.models import Sli, Slo

from . import replay
from .replay import Fired


@dataclass(frozen=True)
class Called:
    """How often somebody would have been called, and for how long in all."""

    times: int
    lasted: timedelta


@dataclass(frozen=True)
class Trial:
    """What a rule would have done; each firing has its place in the span, in percent."""

    rule: Rule
    fired: tuple[Fired, ...]
    places: tuple[tuple[float, float], ...]
    lasted: timedelta


@dataclass(frozen=True)
class Tried:
    """From `since` to `until`. `known` is the share of minutes in which the rules
    could be judged."""

    since: datetime
    until: datetime
    trials: tuple[Trial, ...]
    pages: Called
    tickets: Called
    pages_now: Called | None
    tickets_now: Called | None
    known: float
    counted_since: datetime | None

    @property
    def fired(self) -> list[Fired]:
        """All of them, the latest first."""
        found = [one for trial in self.trials for one in trial.fired]
        return sorted(found, key=lambda one: one.opened_at, reverse=True)


def run(slo: Slo, by: Objective, lasts: timedelta, now: datetime) -> Tried:
    """Try what `by` says over the last so long; what does not count stays out."""
    until = end_of(judged_at(now))
    sli = Sli.objects.filter(slo=slo).first()
    first = end_of(sli.first) if sli and sli.first is not None else None
    since = max(until - lasts, first) if first else until
    excluded = tuple(replay.excluded(slo, since))
    by, present = replace(by, excluded=excluded), objective_loader.objective(slo, excluded)
    history = _history(sli, (by, present), since, until)
    ticks = list(glances(by, history, since, until))
    fired = replay.alerts(ticks)
    before = None
    if present != by:
        before = replay.alerts(glances(present, history, since, until))
    return Tried(
        since=since,
        until=until,
        trials=tuple(_trial(rule, fired, since, until) for rule in by.rules),
        pages=_called(fired, PAGE, until),
        tickets=_called(fired, TICKET, until),
        pages_now=None if before is None else _called(before, PAGE, until),
        tickets_now=None if before is None else _called(before, TICKET, until),
        known=_known(ticks),
        counted_since=first,
    )


def _history(
    sli: Sli | None, objectives: Sequence[Objective], since: datetime, until: datetime
) -> History:
    longest = max(length(one) for by in objectives for one in by.windows)
    back = max(longest, *(by.period for by in objectives))
    return reader.history(sli.pk if sli else 0, last_ended(since) - back, last_ended(until))


def glances(
    by: Objective, history: History, since: datetime, until: datetime
) -> Iterator[tuple[datetime, Evaluation]]:
    """As the backtest has them, but minutes in which every short window is known to be quiet are
    not looked at any further: no rule fires in them, whatever the long ones say."""
    shorts = {(length(rule.short), rule.burn_rate) for rule in by.rules}
    rules = tuple(Judged(rule, OK) for rule in by.rules)
    quiet = replace(unknown(by), state=OK, rules=rules)
    excluded, first = merged(by.excluded), history.first

    def is_quiet(minute: int) -> bool:
        if first is None or minute < first:
            return False
        seen = ((window(long, minute, history.at, excluded), limit) for long, limit in shorts)
        return all(
            one.is_known(by.min_events) and not is_above(one, by, limit) for one, limit in seen
        )

    for minute in range(last_ended(since), last_ended(until) + 1):
        found = quiet if is_quiet(minute) else evaluate(by, minute, history.at, first)
        yield end_of(minute), found


def _trial(rule: Rule, fired: Sequence[Fired], since: datetime, until: datetime) -> Trial:
    own = tuple(one for one in fired if one.rule == rule)
    whole = max(until - since, replay.MINUTE)
    return Trial(
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
        lasted=_lasted(own, until),
    )


def _place(one: Fired, since: datetime, until: datetime, whole: timedelta) -> tuple[float, float]:
    """Where it begins and how wide it is drawn, in percent; the shortest can still be seen."""
    lasted = max((one.resolved_at or until) - one.opened_at, whole / 160)
    return round((one.opened_at - since) / whole * 100, 3), round(lasted / whole * 100, 3)


def _called(fired: Sequence[Fired], severity: str, until: datetime) -> Called:
    own = [one for one in fired if one.rule.severity == severity]
    return Called(len(own), _lasted(own, until))


def _lasted(fired: Sequence[Fired], until: datetime) -> timedelta:
    return sum(((one.resolved_at or until) - one.opened_at for one in fired), timedelta())


def _known(ticks: Sequence[tuple[datetime, Evaluation]]) -> float:
    known = sum(one.state != UNKNOWN for _, one in ticks)
    return known / len(ticks) if ticks else 0.0
