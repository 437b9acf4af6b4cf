"""Answers to the gates of ramps: whether an SLO burns slowly enough since the step began.

The window of a gate has its usual length, but never begins before the step. Its whole minutes are
read from the counters, as far as everything reported has been added to them; the rest at both ends
from event counts between two reports.
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
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, GateAnswer
from slo.arithmetic.budget import round_ratio
from slo.arithmetic.minutes import due_minute, end_of, minute_of
from slo.counters import reader
from slo.models import ReportedEvents, Sli

TYPE = "slo"
REFRESH_AFTER = timedelta(seconds=15)
"""An unchanged answer is written again this often: readers trust it for a minute."""
MAX_REPORT_SPAN = timedelta(minutes=10)
"""No report covers a longer span; longer ones are ignored at the ends."""


@dataclass(frozen=True)
class GateWindow:
    """The window of a gate, and its whole minutes after `first` up to `last`, none if equal.

    `sli` and `budget` are those of the SLO, if there is one of that name.
    """

    slo: str
    start: datetime
    first: int
    last: int
    sli: int | None
    budget: Decimal


@dataclass(frozen=True)
class EventTotals:
    good: float
    total: float


def answer_open_gates(now: datetime) -> int:
    """Answer every open gate about an SLO; return how many answers were written."""
    questions = list(gates.find_open_gates(TYPE).order_by("pk"))
    if not questions:
        return 0
    names = {_slo_name(one) for one in questions}
    known, pending = _load_budgets(names), _load_oldest_pending(names)
    windows = [_gate_window(one, known, pending, now) for one in questions]
    totals = _count_events(windows, now)
    return sum(
        _write_answer(one, evaluate_gate(one.spec, gate_window, events, now), now)
        for one, gate_window, events in zip(questions, windows, totals, strict=True)
    )


def evaluate_gate(
    spec: Mapping[str, Any], gate_window: GateWindow, events: EventTotals, now: datetime
) -> GateAnswer:
    """Return the answer: pass while the burn rate is at most the gate's."""
    seconds = (now - gate_window.start).total_seconds()
    window = durations.format_readable(now - gate_window.start) if seconds >= 1 else "0 s"
    evidence: dict[str, Any] = {"slo": gate_window.slo, "window": window}
    if gate_window.sli is None:
        return GateAnswer(NO_DATA, {**evidence, "why": f"there is no SLO {gate_window.slo}"})
    evidence |= {"good": _plain(events.good), "total": _plain(events.total)}
    if events.total <= 0:
        return GateAnswer(NO_DATA, {**evidence, "why": "no events since the step began"})
    most = Decimal(str(spec.get("max_burn_rate", 1)))
    bad, total = Fraction(events.total) - Fraction(events.good), Fraction(events.total)
    rate = round_ratio(float(bad / (total * Fraction(gate_window.budget))))
    verdict = FAIL if bad > Fraction(most) * Fraction(gate_window.budget) * total else PASS
    return GateAnswer(verdict, {**evidence, "burn_rate": rate})


def _load_budgets(names: set[str]) -> dict[str, tuple[int, Decimal]]:
    rows = Sli.objects.filter(slo__name__in=names, slo__removed_at__isnull=True)
    return {
        name: (pk, 1 - target)
        for name, pk, target in rows.values_list("slo__name", "pk", "slo__target")
    }


def _load_oldest_pending(names: set[str]) -> dict[str, int]:
    """Return the minute of the oldest report that was not added to the minutes yet, by SLO."""
    rows = ReportedEvents.objects.filter(slo__in=names).values_list("slo").annotate(Min("ended_at"))
    return {name: minute_of(ended) for name, ended in rows.order_by()}


def _gate_window(
    gate: Gate,
    known: Mapping[str, tuple[int, Decimal]],
    pending: Mapping[str, int],
    now: datetime,
) -> GateWindow:
    start = min(now, max(gate.since, now - _window_length(gate)))
    first, last = minute_of(start), due_minute(now)
    last = min(last, pending.get(_slo_name(gate), last + 1) - 1)
    sli, budget = known.get(_slo_name(gate), (None, Decimal(1)))
    return GateWindow(_slo_name(gate), start, first, max(first, last), sli, budget)


def _count_events(windows: Sequence[GateWindow], now: datetime) -> list[EventTotals]:
    minutes: dict[int, set[int]] = {}
    for one in windows:
        if one.sli is not None and one.last > one.first:
            minutes.setdefault(one.sli, set()).update((one.first, one.last))
    counts = reader.load_counts(minutes)
    found = []
    for one, (good, total) in zip(windows, _count_edges(windows, now), strict=True):
        totals = EventTotals(float(good), float(total))
        if one.sli is not None and one.last > one.first:
            whole = counts[one.sli, one.last] - counts[one.sli, one.first]
            totals = EventTotals(totals.good + whole.good, totals.total + whole.total)
        all_ = max(totals.total, 0.0)
        found.append(EventTotals(min(max(totals.good, 0.0), all_), all_))
    return found


def _count_edges(windows: Sequence[GateWindow], now: datetime) -> list[tuple[int, int]]:
    spans = [
        EdgeSpan(one.slo, one.start, _boundary(one.first, one, now), _boundary(one.last, one, now))
        for one in windows
    ]
    return event_counts.sum_edges(spans, longest=MAX_REPORT_SPAN, now=now)


def _boundary(minute: int, of: GateWindow, now: datetime) -> datetime:
    """Return the end of a minute; without whole minutes the entire window counts as its ends."""
    return end_of(minute) if of.last > of.first else now


def _write_answer(gate: Gate, given: GateAnswer, now: datetime) -> bool:
    if _is_unchanged(gate, given, now):
        return False
    evidence = {**given.evidence, "looked_at": timestamp(now)}
    return gates.record_answer(
        key=gate.key, verdict=given.verdict, evidence=evidence, observed_at=now, now=now
    )


def _is_unchanged(gate: Gate, given: GateAnswer, now: datetime) -> bool:
    """Return whether the same answer was just written: thousands of ramps may ask every second."""
    if gate.observed_at is None or gate.verdict != given.verdict:
        return False
    said = {name: value for name, value in gate.evidence.items() if name not in _VOLATILE}
    same = {name: value for name, value in given.evidence.items() if name not in _VOLATILE}
    return (
        said == same
        and gate.since <= gate.observed_at
        and (now - REFRESH_AFTER < gate.observed_at <= now)
    )


_VOLATILE = ("looked_at", "window")


def _slo_name(gate: Gate) -> str:
    return str(gate.spec.get("slo", ""))


def _window_length(gate: Gate) -> timedelta:
    """Return the length of the gate's window, the usual one if it can't be read."""
    try:
        return durations.parse(str(gate.spec.get("window", "5m")))
    except ValueError:
        return timedelta(minutes=5)


def _plain(count: float) -> int | float:
    return int(count) if count.is_integer() else count
