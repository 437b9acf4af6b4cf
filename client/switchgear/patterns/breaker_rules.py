"""Rules of a circuit breaker: when it opens, reopens and closes, and for how long. Pure."""

from switchgear.patterns.parameters import BreakerParameters
from switchgear.patterns.sliding_window import CallCounts


def open_cause(parameters: BreakerParameters, tally: CallCounts, consecutive: int) -> str | None:
    """Return the reason to open for the counts in `tally`, None to stay closed.

    `consecutive` is the number of failures since the last success.
    """
    count = parameters.failure_count
    if count is not None:
        return f"failure_count {tally.failures} >= {count}" if tally.failures >= count else None
    if tally.calls < parameters.needed_calls:
        return None
    row = parameters.consecutive_failures
    if tally.failure_rate() >= parameters.failure_rate:
        return f"failure_rate {tally.failure_rate():.2f} >= {parameters.failure_rate:.2f}"
    if row is not None and consecutive >= row:
        return f"consecutive_failures {consecutive} >= {row}"
    if _is_too_slow(parameters, tally):
        return f"slow_call_rate {tally.slow_rate():.2f} >= {parameters.slow_call_rate:.2f}"
    return None


def reopen_cause(parameters: BreakerParameters, probes: CallCounts) -> str | None:
    """Return the reason to open again after these probes, None to close."""
    rate = probes.failure_rate()
    if rate >= parameters.failure_rate:
        return f"probes: failure_rate {rate:.2f} >= {parameters.failure_rate:.2f}"
    if _is_too_slow(parameters, probes):
        slow = probes.slow_rate()
        return f"probes: slow_call_rate {slow:.2f} >= {parameters.slow_call_rate:.2f}"
    return None


def close_cause(parameters: BreakerParameters, probes: CallCounts) -> str:
    return f"probes: failure_rate {probes.failure_rate():.2f} < {parameters.failure_rate:.2f}"


def draw_open_seconds(parameters: BreakerParameters, reopened: int, drawn: float) -> float:
    """Return the seconds to stay open after reopening `reopened` times in a row.

    `drawn` is uniform in [0, 1). Capped times get jitter, too, so that a fleet doesn't probe at one
    moment.
    """
    most, jitter = parameters.open_max_seconds, parameters.open_jitter
    try:
        grown = parameters.open_seconds * float(parameters.open_multiplier) ** reopened
    except OverflowError:
        grown = most
    capped = min(grown, most)
    low, high = capped * (1 - jitter), min(capped * (1 + jitter), most)
    return low + (high - low) * drawn


def _is_too_slow(parameters: BreakerParameters, tally: CallCounts) -> bool:
    if parameters.slow_call_seconds is None:
        return False
    return tally.slow_rate() >= parameters.slow_call_rate
