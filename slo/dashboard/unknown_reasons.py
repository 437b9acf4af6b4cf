"""Reasons why an SLO, or a window of it, is unknown, in sentences. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from controlplane.core import durations
from slo.arithmetic.minutes import end_of, window_minutes
from slo.arithmetic.windows import MIN_COVERED
from slo.models import Sli, Slo, SloStatus

SILENT_MINUTES = 5


def silent_for(sli: Sli | None, now: datetime) -> timedelta | None:
    """Return how long nothing has been counted, None if that is normal."""
    if sli is None or sli.last is None:
        return None
    silent = now - end_of(sli.last)
    return silent if silent > timedelta(minutes=SILENT_MINUTES) else None


def explain_unknown(
    slo: Slo, sli: Sli | None, status: SloStatus | None, now: datetime
) -> list[str]:
    """Return the reasons, in the order to check them; empty if the SLO is known."""
    if status is not None and status.state != "unknown":
        return []
    if sli is None or sli.last is None:
        return [_no_data(slo)]
    silent = silent_for(sli, now)
    found = [f"Nothing has been counted for {_minutes(silent)}."] if silent else []
    if status is None:
        return [*found, "It has not been judged yet; that happens once a minute."]
    return [*found, *_unknown_windows(slo, status)]


def _unknown_windows(slo: Slo, status: SloStatus) -> list[str]:
    names = {name for rule in slo.rules for name in (rule["long"], rule["short"])}
    unknown = sorted(
        (name for name in names if status.burn_rates.get(name) is None), key=window_minutes
    )
    return [explain_unknown_window(name, status.coverage, slo.min_events) for name in unknown]


def explain_unknown_window(name: str, coverage: Mapping[str, float | None], min_events: int) -> str:
    """Return why a window (`1h`) is unknown."""
    minutes = window_minutes(name)
    covered = round((coverage.get(name) or 0) * minutes)
    needed = min(minutes, max(MIN_COVERED, -(-minutes // 10)))
    long = durations.format_readable(timedelta(minutes=minutes))
    if covered < needed:
        return f"Of the last {long}, samples cover {covered} min; {needed} are needed."
    if min_events:
        return f"In the last {long} fewer than {min_events:,} events were counted."
    return f"In the last {long} no event was counted."


def _minutes(lasting: timedelta) -> str:
    return durations.format_readable(lasting - lasting % timedelta(minutes=1))


def _no_data(slo: Slo) -> str:
    if slo.source.get("type") == "prometheus":
        return "No sample has been read from Prometheus yet; it is asked once a minute."
    return "Nothing was ever counted for it: push points to /api/v1/sli/, or have a client report."


def shown_windows(slo: Slo, status: SloStatus | None) -> Sequence[str]:
    """Return every window to show, shortest first."""
    with_status = set(status.burn_rates) if status else set()
    named = {name for rule in slo.rules for name in (rule["long"], rule["short"])}
    return sorted(with_status | named, key=window_minutes)
