"""A checklist for the settings of breakers: when they open, and how they probe and close.

python breaker_setup.py shop:policies
"""

import re
import sys

from findings import Item, check

from switchgear import BreakerParameters, Policy

MIN_FAILURES = 5
MIN_CALLS = 10
MAX_FAILING = 0.8
MAX_CALLS = 500
MAX_PROBES = 20
OPEN_SECONDS = (5.0, 120.0)


def _is_insensitive(parameters: BreakerParameters) -> bool:
    """Return True if the breaker stays closed after only a few failures."""
    in_a_row = parameters.consecutive_failures
    if in_a_row is not None and in_a_row < MIN_FAILURES:
        return False
    if parameters.failure_count is not None:
        return parameters.failure_count >= MIN_FAILURES
    return parameters.needed_calls >= MIN_CALLS


def _probes_can_end(policy: Policy) -> bool:
    timeout = policy.timeout_seconds
    limit = policy.breaker.parameters.half_open_max_seconds
    if not limit:
        return timeout is not None
    return timeout is None or limit >= timeout


ITEMS = (
    Item(
        "a name such as caller->callee",
        "The console could neither show nor force it.",
        lambda policy: bool(re.fullmatch(r"[a-z0-9-]+->[a-z0-9-]+", policy.name)),
    ),
    Item(
        f"a share of at least {MIN_CALLS} calls, or at least {MIN_FAILURES} failures",
        "It would open at what is usual, and keep a healthy callee away.",
        lambda policy: _is_insensitive(policy.breaker.parameters),
    ),
    Item(
        f"a failure_rate of at most {MAX_FAILING:g}",
        "A callee that fails nearly every call would be called on and on.",
        lambda policy: (
            policy.breaker.parameters.failure_count is not None
            or policy.breaker.parameters.failure_rate <= MAX_FAILING
        ),
    ),
    Item(
        f"at most {MAX_CALLS} calls, or failures, until it may open",
        "All of them would have to fail first.",
        lambda policy: (
            (policy.breaker.parameters.failure_count or policy.breaker.parameters.needed_calls)
            <= MAX_CALLS
        ),
    ),
    Item(
        "a timeout, or slow_call_seconds",
        "A callee that hangs would never be counted as failing.",
        lambda policy: (
            policy.timeout_seconds is not None
            or policy.breaker.parameters.slow_call_seconds is not None
        ),
    ),
    Item(
        "jitter in how long it stays open (open_jitter)",
        "All instances would probe at the same moment.",
        lambda policy: policy.breaker.parameters.open_jitter > 0,
    ),
    Item(
        "open for {:g} to {:g} seconds at first".format(*OPEN_SECONDS),
        "A shorter time gives no relief; a longer one keeps users waiting after the recovery.",
        lambda policy: OPEN_SECONDS[0] <= policy.breaker.parameters.open_seconds <= OPEN_SECONDS[1],
    ),
    Item(
        f"few probes (half_open_calls up to {MAX_PROBES})",
        "A recovering dependency would be overloaded again.",
        lambda policy: policy.breaker.parameters.half_open_calls <= MAX_PROBES,
    ),
    Item(
        "no more concurrent probes than in total (half_open_concurrent)",
        "Those beyond would be calls that nobody looks at.",
        lambda policy: (
            policy.breaker.parameters.half_open_concurrent
            <= policy.breaker.parameters.half_open_calls
        ),
    ),
    Item(
        "an end for each probe (a timeout, within half_open_max_seconds if that is set)",
        "A probe that hangs would reject all calls, a slow one would open it again.",
        _probes_can_end,
    ),
)

if __name__ == "__main__":
    sys.exit(check(ITEMS))
