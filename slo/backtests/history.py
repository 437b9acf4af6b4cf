"""The history of an SLO for the API: its past status, and backtests of its or other rules."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from controlplane.core import canonical, durations
from controlplane.core.errors import InvalidInput
from slo.arithmetic.evaluate import Evaluation
from slo.arithmetic.minutes import MINUTE
from slo.models import Sli, Slo
from slo.objectives import documents

from . import replay

MAX_STEPS = 2000
"""Most steps of a response that lists each step."""
MAX_TICKS = 45_000
"""Most ticks of a backtest that lists only alerts: the minutes of 31 days."""
USUAL_STEPS = 300
STEPS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
SECOND = timedelta(seconds=1)
A_DAY = timedelta(days=1)
EARLIEST = timedelta(days=800)
REPLACEABLE = ("rules", "target", "window_days", "min_events", "slice_target")


def load_series(
    slo: Slo, *, since: datetime | None, until: datetime | None, step: Any, now: datetime
) -> dict[str, Any]:
    """Return the status of an SLO at each step of a span, by default of the last day.

    Raise :class:`InvalidInput` for an invalid span or step.
    """
    end = min(until or now, now)
    start = since or end - A_DAY
    _require_span(start, end, now, "from", "to")
    width = _choose_step(step, end - start, USUAL_STEPS, MAX_STEPS)
    ticks = replay.evaluate_ticks(slo, start=start, end=end, step=width)
    return {
        "from": canonical.timestamp(start),
        "to": canonical.timestamp(end),
        "step_seconds": width // SECOND,
        "points": [
            {**tick_document(at, one), "remaining_ratio": one.remaining_ratio} for at, one in ticks
        ],
    }


def run_backtest(
    slo: Slo,
    *,
    start: datetime,
    end: datetime | None,
    step: Any,
    instead: Mapping[str, Any],
    each: bool,
    now: datetime,
) -> dict[str, Any]:
    """Return the alerts that an SLO's rules would have opened over a span.

    `instead` holds values to use in place of the SLO's fields (`rules`, `target`, …). With `each`,
    the result also lists the evaluation at every step. Raise :class:`InvalidInput` for an invalid
    field, span or step.
    """
    if unknown := instead.keys() - {*REPLACEABLE}:
        raise InvalidInput({name: ["There is no default for it here."] for name in unknown})
    document = documents.validate(slo.name, {**documents.to_document(slo), **instead})
    excluded = tuple(replay.load_excluded_spans(slo, start))
    objective = replace(documents.to_objective(document), excluded=excluded)
    end = min(end or now, now)
    _require_span(start, end, now, "start", "end")
    max_steps = MAX_STEPS if each else MAX_TICKS
    width = _choose_step(step, end - start, max_steps, max_steps)
    if each or width > MINUTE or not objective.rules:
        ticks = replay.evaluate_ticks(slo, start=start, end=end, step=width, objective=objective)
    else:  # Faster; burn rates that nothing needs may be missing.
        sli = Sli.objects.filter(slo=slo).first()
        history = replay.load_history(sli, [objective], start, end)
        ticks = replay.evaluate_minutes(objective, history, start, end)
    found = list(ticks)
    outcome: dict[str, Any] = {
        "start": canonical.timestamp(start),
        "end": canonical.timestamp(end),
        "step_seconds": width // SECOND,
        "ticks": len(found),
        "states": dict(Counter(one.state for _, one in found)),
        "alerts": [
            {
                **one.rule.document(),
                "opened_at": canonical.timestamp(one.opened_at),
                "resolved_at": canonical.timestamp_or_none(one.resolved_at),
                "lasted_seconds": one.duration(end) // SECOND,
                "worst": one.worst,
            }
            for one in replay.collect_alerts(found)
        ],
    }
    if each:
        outcome["results"] = [
            {**tick_document(at, one), "rules": [rule.document() for rule in one.rules]}
            for at, one in found
        ]
    return outcome


def tick_document(at: datetime, evaluation: Evaluation) -> dict[str, Any]:
    return {
        "at": canonical.timestamp(at),
        "state": evaluation.state,
        "burn_rates": dict(evaluation.burn_rates),
    }


def _require_span(start: datetime, end: datetime, now: datetime, first: str, last: str) -> None:
    if start >= end:
        raise InvalidInput({last: [f"Must be later than `{first}`, and not in the future."]})
    if start < now - EARLIEST:
        raise InvalidInput({first: [f"Data is kept for {EARLIEST.days} days."]})


def _choose_step(raw: Any, span: timedelta, usual: int, max_steps: int) -> timedelta:
    """Return the requested step; if `raw` is None, one that makes at most `usual` steps.

    Raise :class:`InvalidInput` for an invalid step, or one that makes more than `max_steps` steps.
    """
    if raw is None:
        return next((one for one in STEPS if span <= usual * one * SECOND), STEPS[-1]) * SECOND
    step = _parse_step(raw)
    if step < MINUTE or step % MINUTE:
        raise InvalidInput({"step": ["Must be whole minutes: counters are kept by the minute."]})
    if span // step + 1 > max_steps:
        message = f"This results in more than {max_steps:,} steps; use a larger step."
        raise InvalidInput({"step": [message]})
    return step


def _parse_step(raw: Any) -> timedelta:
    if isinstance(raw, str) and raw.strip().isascii() and raw.strip().isdigit():
        raw = int(raw.strip()[:9])
    try:
        if isinstance(raw, int) and not isinstance(raw, bool):
            return timedelta(seconds=min(max(raw, 0), 10**9))
        return durations.parse(raw if isinstance(raw, str) else "")
    except ValueError as error:
        raise InvalidInput({"step": [f"Seconds, or a duration. {error}"]}) from error
