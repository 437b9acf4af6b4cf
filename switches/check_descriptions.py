"""Descriptions of a key's checks: how often, by which services, and when last."""

from collections.abc import Sequence
from datetime import datetime

from controlplane.core.instances.checked_keys import CallingService, CheckedKey
from controlplane.core.templatetags.screen import age

from .scopes import GLOBAL_ID

NOT_CHECKED = "no checks reported in the last hour"
AFFECTS_ALL = "affects all checks"
"""Description of the global switch without checks of its own: services need not report them."""


def describe_checks(key: CheckedKey, now: datetime) -> str:
    """Return a text such as `12/s by core, 3 s ago`, or `last checked by core 5 min ago`.

    Callers that all stopped cleanly are said to have stopped.
    """
    last_seen = key.freshness.at
    if last_seen is None or not key.is_checked:
        return AFFECTS_ALL if key.switch == GLOBAL_ID else NOT_CHECKED
    callers, ago = name_callers(key.services), f"{age(now - last_seen)} ago"
    if key.has_stopped:
        return f"last checked by {callers} {ago}, stopped since"
    if not key.freshness.is_current:
        return f"last checked by {callers} {ago}"
    return f"{format_rate(key.calls_per_second)} by {callers}, {ago}"


def name_callers(services: Sequence[CallingService]) -> str:
    """Return the busiest service and the number of the others: `core and 2 more`."""
    first, *others = services
    name = first.id or ("API token" if first.instances == 1 else "API tokens")
    return f"{name} and {len(others):,} more" if others else name


def format_rate(rate: float) -> str:
    """Return a rate as text: `0/s`, `< 0.1/s`, `3.4/s`, `1,240/s`."""
    if 0 < rate < 0.1:
        return "< 0.1/s"
    return f"{rate:.1f}/s" if 0 < rate < 9.95 else f"{round(rate):,}/s"
