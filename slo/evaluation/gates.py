"""Answers to the gates of ramps: does an SLO burn slowly enough since the step began?

A gate's window is as long as it says and never begins before its step did. Its whole minutes are
read from the counters of minutes, as far as everything that was reported has been added to them;
what is left at both ends from the events that were counted between two reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.db.models import Min

from controlplane.core import durations
from controlplane.core.canonical import timestamp
from controlplane.core.gates import event_counts
from controlplane.core.gates import services as gates
from controlplane.core.gates.event_counts import EdgeSpan
from controlplane.core.gates.models import Gate
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, Answer
from slo.arithmetic.budget import round_ratio
from slo.arithmetic.minutes import due_minute, end_of, minute_of
from slo.counters import reader
from slo.models import Reported, Sli

TYPE = "slo"
SAID_AGAIN_AFTER = timedelta(seconds=15)
"""An answer that stays the same is written anew this often: whoever asked takes it for a minute."""
MAX_STEP = timedelta(minutes=10)
"""Nobody reports events of a longer time at once; what does is left out at the ends."""


@dataclass(frozen=True)
class Wanted:
    """A gate's window, and its whole minutes, after the end of `first` up to that of `last`; none
    if they are equal. `sli` and `budget` are those of the SLO, if there is one of that name."""

    slo: str
    start: datetime
    first: int
    last: int
    sli: int | None
    budget: Decimal


@dataclass(frozen=True)
class Events:
    good: float
    total: float


def answer_open(now: datetime) -> int:
    """Answer every open question about an SLO; returns how many answers were written."""
    questions = gates.open_questions(TYPE)
    if not questions:
        return 0
    names = {_slo(one) for one in questions}
    known, pending = _known(names), _pending(names)
    wanted = [_wanted(one, known, pending, now) for one in questions]
    seen = _counted(wanted, now)
    return sum(
        _answered(one, judge(one.spec, asked, events, now), now)
        for one, asked, events in zip(questions, wanted, seen, strict=True)
    )


def judge(spec: Mapping[str, Any], asked: Wanted, events: Events, now: datetime) -> Answer:
    """Passes while the burn rate is at most the gate's; without events there is no data."""
    seconds = (now - asked.start).total_seconds()
    window = durations.readable(now - asked.start) if seconds >= 1 else "0 s"
    evidence: dict[str, Any] = {"slo": asked.slo, "window": window}
    if asked.sli is None:
        return Answer(NO_DATA, {**evidence, "why": f"there is no SLO {asked.slo}"})
    evidence |= {"good": _plain(events.good), "total": _plain(events.total)}
    if events.total <= 0:
        return Answer(NO_DATA, {**evidence, "why": "no events since the step began"})
    most = Decimal(str(spec.get("max_burn_rate", 1)))
    bad, total = Fraction(events.total) - Fraction(events.good), Fraction(events.total)
    rate = round_ratio(float(bad / (total * Fraction(asked.budget))))
    verdict = FAIL if bad > Fraction(most) * Fraction(asked.budget) * total else PASS
    return Answer(verdict, {**evidence, "burn_rate": rate})


def _known(names: set[str]) -> dict[str, tuple[int, Decimal]]:
    rows = Sli.objects.filter(slo__name__in=names, slo__removed_at__isnull=True)
    return {
        name: (pk, 1 - target)
        for name, pk, target in rows.values_list("slo__name", "pk", "slo__target")
    }


def _pending(names: set[str]) -> dict[str, int]:
    """Of which minute the oldest report is that was not added to the minutes yet, by SLO."""
    rows = Reported.objects.filter(slo__in=names).values_list("slo").annotate(Min("ended_at"))
    return {name: minute_of(ended) for name, ended in rows.order_by()}


def _wanted(
    gate: Gate,
    known: Mapping[str, tuple[int, Decimal]],
    pending: Mapping[str, int],
    now: datetime,
) -> Wanted:
    start = min(now, max(gate.since, now - _length(gate)))
    first, last = minute_of(start), due_minute(now)
    last = min(last, pending.get(_slo(gate), last + 1) - 1)
    sli, budget = known.get(_slo(gate), (None, Decimal(1)))
    return Wanted(_slo(gate), start, first, max(first, last), sli, budget)


def _counted(wanted: Sequence[Wanted], now: datetime) -> list[Events]:
    minutes: dict[int, set[int]] = {}
    for one in wanted:
        if one.sli is not None and one.last > one.first:
            minutes.setdefault(one.sli, set()).update((one.first, one.last))
    counts = reader.load_counts(minutes)
    found = []
    for one, (good, total) in zip(wanted, _edges(wanted, now), strict=True):
        seen = Events(float(good), float(total))
        if one.sli is not None and one.last > one.first:
            whole = counts[one.sli, one.last] - counts[one.sli, one.first]
            seen = Events(seen.good + whole.good, seen.total + whole.total)
        all_ = max(seen.total, 0.0)
        found.append(Events(min(max(seen.good, 0.0), all_), all_))
    return found


def _edges(wanted: Sequence[Wanted], now: datetime) -> list[tuple[int, int]]:
    spans = [
        EdgeSpan(one.slo, one.start, _boundary(one.first, one, now), _boundary(one.last, one, now))
        for one in wanted
    ]
    return event_counts.sum_edges(spans, longest=MAX_STEP, now=now)


def _boundary(minute: int, of: Wanted, now: datetime) -> datetime:
    """The end of a minute; without a whole one all of the window is what is left at its ends."""
    return end_of(minute) if of.last > of.first else now


def _answered(gate: Gate, given: Answer, now: datetime) -> bool:
    if _stands(gate, given, now):
        return False
    evidence = {**given.evidence, "looked_at": timestamp(now)}
    return gates.answer(
        key=gate.key, verdict=given.verdict, evidence=evidence, observed_at=now, now=now
    )


def _stands(gate: Gate, given: Answer, now: datetime) -> bool:
    """Whether the same was said a moment ago: thousands of ramps may ask, each second."""
    if gate.observed_at is None or gate.verdict != given.verdict:
        return False
    said = {name: value for name, value in gate.evidence.items() if name not in _MOVING}
    same = {name: value for name, value in given.evidence.items() if name not in _MOVING}
    return (
        said == same
        and gate.since <= gate.observed_at
        and (now - SAID_AGAIN_AFTER < gate.observed_at <= now)
    )


_MOVING = ("looked_at", "window")


def _slo(gate: Gate) -> str:
    return str(gate.spec.get("slo", ""))


def _length(gate: Gate) -> timedelta:
    """What can't be read is as long as a gate usually is."""
    try:
        return durations.parse(str(gate.spec.get("window", "5m")))
    except ValueError:
        return timedelta(minutes=5)


def _plain(count: float) -> int | float:
    return int(count) if count.is_integer() else count
