"""Retention of breakers' states, minutes, transitions and alarms."""

from datetime import timedelta
from functools import partial

from controlplane.core.instances.exports import INSTANCES
from controlplane.core.retention import RETENTION_RULES, RetentionRule

from .minutes import MINUTES_KEPT

_rule = partial(RetentionRule, tick="breakers.purge")
_long_term = partial(_rule, period=timedelta(days=35), bounds=(8, 400))
TRANSITIONS = _long_term(
    name="breaker-transitions",
    model="breakers.Transition",
    since="received_at",
    order="received_at",
    why="State changes of breakers, for a dependency's page and the weekly report.",
)
MINUTES = _rule(
    name="breaker-minutes",
    model="breakers.Minute",
    period=MINUTES_KEPT,
    since="minute",
    order="minute",
    why="States of breakers by the minute; the furthest that threshold rules look back.",
)
ALARMS = _long_term(
    name="breaker-alarms",
    model="breakers.Alarm",
    where="closed_at < %(before)s",
    since="since",
    why="Past outages.",
    exempt="Open items.",
)
# States of forgotten instances, or of earlier boots.
STATES = _rule(
    name="breaker-states",
    model="breakers.BreakerState",
    period=timedelta(days=1),
    where=f"changed_at < %(before)s AND NOT EXISTS (SELECT FROM {INSTANCES}"
    " WHERE i.id = it.instance AND i.boot = it.boot)",
    since="changed_at",
    why="Last reported state of each instance's breakers.",
    exempt="States of an instance's current boot.",
)
RULES = (TRANSITIONS, MINUTES, ALARMS, STATES)

RETENTION_RULES.register(*RULES)
