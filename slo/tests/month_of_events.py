"""A month of events for tests of screens: steady days and nights, and incidents."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.tests.rows import insert
from slo.arithmetic.minutes import end_of, last_ended
from slo.evaluation import evaluator
from slo.models import Alert, CounterHour, CounterMinute, Exclusion, Sli, Slo, SloStatus

UNPACKED_HOURS = 72
A_DAY = 1440
Row = tuple[int, float, float, int]


@dataclass(frozen=True)
class Incident:
    """Minutes with this share of bad events, beginning `ago` minutes before now.

    None: nothing was counted.
    """

    ago: int
    minutes: int
    bad: float | None


def month(
    slo: Slo,
    now: datetime,
    incidents: Sequence[Incident] = (),
    *,
    days: int = 31,
    a_minute: float = 600,
    baseline: float = 0.0002,
) -> Sli:
    """Store so many days of counters up to now, the older ones packed by the hour."""
    sli = Sli.objects.get(slo=slo)
    last = last_ended(now)
    first = (last - days * A_DAY) // 60 * 60
    shares = {last - one.ago + place: one.bad for one in incidents for place in range(one.minutes)}
    rows, good, total, covered, owed = [(first, 0.0, 0.0, 0)], 0.0, 0.0, 0, 0.0
    for minute in range(first + 1, last + 1):
        share = shares.get(minute, baseline)
        if share is not None:
            wave = 1 + 0.5 * math.sin(2 * math.pi * (minute % A_DAY) / A_DAY - 2)
            events = round(a_minute * wave)
            owed += events * share
            bad = min(events, math.floor(owed))
            owed -= bad
            good += events - bad
            total, covered = total + events, covered + 1
        rows.append((minute, good, total, covered))
    known = [row for row in rows if shares.get(row[0], baseline) is not None]
    _store(sli, rows, known, last)
    sli.first, sli.last = first, known[-1][0]
    sli.save(update_fields=["first", "last"])
    return sli


def store_statuses(slos: Sequence[Slo], now: datetime, *, since_minutes: int = 31) -> None:
    """Evaluate at the last minute that is over."""
    minute = last_ended(now)
    for evaluated in evaluator.evaluate_slos(slos, minute):
        evaluation = evaluated.evaluation
        SloStatus.objects.update_or_create(
            slo=evaluated.slo,
            defaults={
                "minute": minute,
                "state": evaluation.present_state,
                "since": now - timedelta(minutes=since_minutes),
                "burn_rates": dict(evaluation.burn_rates),
                "coverage": dict(evaluation.coverage),
                "rules": [rule.document() for rule in evaluation.rules],
                "remaining_ratio": evaluation.remaining_ratio,
                "exhausts_at": evaluation.exhausts_at,
            },
        )


def alert(slo: Slo, opened_at: datetime, minutes: int | None, **fields: object) -> Alert:
    """Create an alert of the SLO's first rule, resolved after so many minutes (None: open)."""
    ended = None if minutes is None else opened_at + timedelta(minutes=minutes)
    summary = f"{slo.name} burned its error budget at 18.2× the allowed rate over 1h"
    columns = {"rule": "1h/5m>14 page", "label": "page", "severity": "critical", "summary": summary}
    return Alert.objects.create(
        **{
            "kind": "burn",
            "slo": slo,
            "subject": slo.name,
            "service": slo.service,
            "opened_at": opened_at,
            "firing_at": ended or opened_at,
            "resolved_at": ended,
            **columns,
            **fields,
        }
    )


def excluded(slo: Slo, first: int, last: int, **fields: object) -> Exclusion:
    """Exclude the minutes from the end of one to the end of another."""
    columns = {"reason": "Announced maintenance, CHG-2207", "created_by": "user:olga", **fields}
    return Exclusion.objects.create(
        slo=slo,
        starts_at=end_of(first),
        ends_at=end_of(last),
        created_at=end_of(last),
        **columns,
    )


def _store(sli: Sli, rows: Sequence[Row], known: Sequence[Row], last: int) -> None:
    edge = (last // 60 - UNPACKED_HOURS) * 60
    packed = [row for row in rows if row[0] < edge]
    hours = [packed[place : place + 60] for place in range(0, len(packed), 60)]
    insert(
        CounterHour,
        ("sli_id", "hour", "good", "total", "covered"),
        (
            (sli.pk, hour[0][0] // 60, *([row[n] for row in hour] for n in (1, 2, 3)))
            for hour in hours
        ),
    )
    insert(
        CounterMinute,
        ("sli_id", "minute", "good", "total", "covered"),
        ((sli.pk, *row) for row in known if row[0] >= edge),
    )
