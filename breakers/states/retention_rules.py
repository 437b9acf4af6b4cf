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
    why="The history of breakers, for the page of a dependency and the weekly report.",
)
MINUTES = _rule(
    name="breaker-minutes",
    model="breakers.Minute",
    period=MINUTES_KEPT,
    since="minute",
    order="minute",
    why="How breakers stood by the minute; threshold rules look back as far at most.",
)
ALARMS = _long_term(
    name="breaker-alarms",
    model="breakers.Alarm",
    where="closed_at < %(before)s",
    since="since",
    why="Outages of a provider that are over.",
    exempt="What is open.",
)
# States of forgotten instances, or of earlier boots.
STATES = _rule(
    name="breaker-states",
    model="breakers.BreakerState",
    period=timedelta(days=1),
    where=f"changed_at < %(before)s AND NOT EXISTS (SELECT FROM {INSTANCES}"
    " WHERE i.id = it.instance AND i.boot = it.boot)",
    since="changed_at",
    why="What instances said last of their breakers.",
    exempt="Those of instances that run.",
)
RULES = (TRANSITIONS, MINUTES, ALARMS, STATES)

RETENTION_RULES.register(*RULES)
