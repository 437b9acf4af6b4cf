"""A checklist before deployment: the service must survive the failure of each dependency.

python pre_deployment.py shop:policies
"""

import sys

from findings import Item, check

from switchgear import Policy

MAX_ATTEMPTS = 5
MAX_BUDGET_RATE = 0.5
MAX_AT_ONCE = 1000
"""Largest acceptable limit of a bulkhead, and of its queue."""
PASSING = (408, 429)
"""4xx HTTP statuses that mean a temporary error."""


def _tries_fit(policy: Policy) -> bool:
    """Return True if the deadline leaves time for a second attempt after a timeout."""
    deadline, timeout = policy.deadline, policy.timeout_seconds
    if policy.retry is None or deadline is None or deadline.seconds is None or timeout is None:
        return True
    return deadline.seconds > timeout


def _has_few_retries(policy: Policy) -> bool:
    if policy.retry is None:
        return True
    parameters = policy.retry.parameters
    return parameters.attempts <= MAX_ATTEMPTS and parameters.budget_rate <= MAX_BUDGET_RATE


def _retries_no_mistakes(policy: Policy) -> bool:
    if policy.retry is None:
        return True
    statuses = [each for each in policy.retry.parameters.retry_on if isinstance(each, int)]
    return not any(400 <= each <= 499 and each not in PASSING for each in statuses)


def _is_bounded(policy: Policy) -> bool:
    parameters = None if policy.bulkhead is None else policy.bulkhead.parameters
    return parameters is None or max(parameters.limit, parameters.queue) <= MAX_AT_ONCE


def _says_what_is_given_instead(policy: Policy) -> bool:
    return policy.fallback is not None or "fallback" in policy.arguments


ITEMS = (
    Item(
        "a time limit for each try (timeout_seconds)",
        "A callee that hangs would hold the caller for ever.",
        lambda policy: policy.timeout_seconds is not None,
    ),
    Item(
        "a deadline for the whole call (deadline_seconds)",
        "Users would wait for all tries and pauses together.",
        lambda policy: policy.deadline is not None,
    ),
    Item("a deadline longer than one try", "No second try would ever begin.", _tries_fit),
    Item(
        f"at most {MAX_ATTEMPTS} attempts, and a retry budget of at most {MAX_BUDGET_RATE:.0%}",
        "Retries would multiply the load on who is failing already.",
        _has_few_retries,
    ),
    Item(
        "retry_on without 4xx, but for {} and {}".format(*PASSING),
        "A mistake does not become right by being sent again.",
        _retries_no_mistakes,
    ),
    Item(
        "a limit of calls at once (bulkhead)",
        "One slow dependency would take every thread and connection.",
        lambda policy: policy.bulkhead is not None,
    ),
    Item(
        f"at most {MAX_AT_ONCE} calls at once, and as many that wait",
        "A limit that is never met holds nothing back.",
        _is_bounded,
    ),
    Item(
        "a fallback, or fallback=None if nothing can stand in",
        "Nobody would have thought of what users see then.",
        _says_what_is_given_instead,
    ),
    Item(
        "a kill switch around it (feature, segment or experiments)",
        "Nobody could stop it without a deployment.",
        lambda policy: policy.guard is not None,
    ),
    Item(
        "a breaker that nobody has forced",
        "An override that was forgotten protects nothing.",
        lambda policy: policy.breaker.mode == "normal",
    ),
)

if __name__ == "__main__":
    sys.exit(check(ITEMS))
