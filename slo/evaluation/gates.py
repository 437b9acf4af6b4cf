"""Evaluation of ramp gates on the burn rate of an SLO.

A gate's window begins with the ramp's step at the earliest. Its whole minutes are read from the
minute counters, if complete; the time before and after them from the counts of single reports.
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
from slo.arithmetic.evaluate import round_ratio
from slo.arithmetic.minutes import due_minute, end_of, minute_of
from slo.arithmetic.windows import ZERO
from slo.counters import reader
from slo.models import ReportedEvents, Sli

TYPE = "slo"
REFRESH_AFTER = timedelta(seconds=15)
"""Age at which an unchanged answer is written again, before it expires after a minute."""
MAX_REPORT_SPAN = timedelta(minutes=10)
"""Longest report that is counted at the ends of a gate's window."""


@dataclass(frozen=True)
class GateWindow:
    """The time, up to now, over which a gate measures the burn rate of an SLO.

    It begins at `start`; its whole minutes are those after `first` and up to `last`. `sli` is the
    id of the SLO's SLI, None if there is no such SLO. `budget` is the share of events that may be
    bad; for an SLO that counts minutes, the share of events that may be bad in a good minute.
    """

    slo: str
    start: datetime
    first: int
    last: int
    sli: int | None
    budget: Decimal


def answer_open_gates(now: datetime) -> int:
    """Evaluate every open gate that depends on an SLO; return how many verdicts were saved."""
    questions = list(gates.find_open_gates(TYPE).order_by("pk"))
    if not questions:
        return 0
    names = {_slo_name(one) for one in questions}
    slis = Sli.objects.filter(slo__name__in=names, slo__removed_at__isnull=True)
    known = {
        name: (pk, 1 - (slice_target or target))
        for name, pk, target, slice_target in slis.values_list(
            "slo__name", "pk", "slo__target", "slo__slice_target"
        )
    }
    # Reports that are not yet added to the minute counters.
    reports = ReportedEvents.objects.filter(slo__in=names).order_by()
    oldest = reports.values_list("slo").annotate(Min("ended_at"))
    pending = {name: minute_of(ended) for name, ended in oldest}
    windows = []
    for one in questions:
        name, start = _slo_name(one), min(now, max(one.since, now - read_window(one.spec)))
        first, last = minute_of(start), due_minute(now)
        last = max(first, min(last, pending.get(name, last + 1) - 1))
        windows.append(GateWindow(name, start, first, last, *known.get(name, (None, Decimal(1)))))
    counts = _count_events(windows, now)
    return sum(
        _write_answer(one, evaluate_gate(one.spec, gate_window, good, total, now), now)
        for one, gate_window, (good, total) in zip(questions, windows, counts, strict=True)
    )


def evaluate_gate(
    spec: Mapping[str, Any], gate_window: GateWindow, good: float, total: float, now: datetime
) -> GateAnswer:
    """Return the verdict on a gate, with the evidence for it.

    The gate passes if the burn rate is at most its limit, and fails above. Without events, the
    verdict is no data.
    """
    seconds = (now - gate_window.start).total_seconds()
    window = durations.format_readable(now - gate_window.start) if seconds >= 1 else "0 s"
    evidence: dict[str, Any] = {"slo": gate_window.slo, "window": window}
    if gate_window.sli is None:
        return GateAnswer(NO_DATA, {**evidence, "why": f"the SLO {gate_window.slo} doesn't exist"})
    evidence |= {"good": _to_json_count(good), "total": _to_json_count(total)}
    if total <= 0:
        whole = read_window(spec)
        why = f"no events in the last {durations.format_readable(whole)} of the step"
        if now - gate_window.start < whole:
            why = "no events reported yet in this step"
        return GateAnswer(NO_DATA, {**evidence, "why": why})
    limit = Decimal(str(spec.get("max_burn_rate", 1)))
    allowed = Fraction(total) * Fraction(gate_window.budget)
    bad = Fraction(total) - Fraction(good)
    rate = round_ratio(float(bad / allowed))
    verdict = FAIL if bad > Fraction(limit) * allowed else PASS
    return GateAnswer(verdict, {**evidence, "burn_rate": rate})


def _count_events(windows: Sequence[GateWindow], now: datetime) -> list[tuple[float, float]]:
    """Return the number of good events and of all events in each window."""
    minutes: dict[int, set[int]] = {}
    spans = []
    for one in windows:
        has_minutes = one.last > one.first
        if one.sli is not None and has_minutes:
            minutes.setdefault(one.sli, set()).update((one.first, one.last))
        edges = (end_of(one.first), end_of(one.last)) if has_minutes else (now, now)
        spans.append(EdgeSpan(one.slo, one.start, *edges))
    counts = reader.load_counts(minutes)
    at_edges = event_counts.sum_edges(spans, longest=MAX_REPORT_SPAN, now=now)
    found = []
    for one, (good, total) in zip(windows, at_edges, strict=True):
        whole = ZERO
        if one.sli is not None and one.last > one.first:
            whole = counts[one.sli, one.last] - counts[one.sli, one.first]
        all_events = max(float(total) + whole.total, 0.0)
        found.append((min(max(float(good) + whole.good, 0.0), all_events), all_events))
    return found


def _write_answer(gate: Gate, answer: GateAnswer, now: datetime) -> bool:
    """Save a gate's verdict and return True, unless an equal one was saved recently."""
    if gate.observed_at is not None and gate.verdict == answer.verdict:
        is_recent = gate.since <= gate.observed_at and now - REFRESH_AFTER < gate.observed_at <= now
        if is_recent and _stable_evidence(gate.evidence) == _stable_evidence(answer.evidence):
            return False
    evidence = {**answer.evidence, "looked_at": timestamp(now)}
    return gates.record_answer(
        key=gate.key, verdict=answer.verdict, evidence=evidence, observed_at=now, now=now
    )


def _stable_evidence(evidence: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in evidence.items() if name not in _VOLATILE}


_VOLATILE = ("looked_at", "window")


def _slo_name(gate: Gate) -> str:
    return str(gate.spec.get("slo", ""))


def read_window(spec: Mapping[str, Any]) -> timedelta:
    """Return the length of a gate's window, 5 minutes if it is missing or invalid."""
    try:
        return durations.parse(str(spec.get("window", "5m")))
    except ValueError:
        return timedelta(minutes=5)


def _to_json_count(count: float) -> int | float:
    return int(count) if count.is_integer() else count
