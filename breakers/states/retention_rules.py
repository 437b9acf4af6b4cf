"""Retention of breakers' states, minutes, transitions and alarms."""

from datetime import timedelta

from controlplane.core.instances.exports import INSTANCES
from controlplane.core.retention import RETENTION_RULES, RetentionRule

from .minutes import MINUTES_KEPT

TRANSITIONS = RetentionRule(
    name="breaker-transitions",
    model="breakers.Transition",
    period=timedelta(days=35),
    since="received_at",
    order="received_at",
    bounds=(8, 400),
    tick="breakers.purge",
    why="The history of breakers, for the page of a dependency and the weekly report.",
)
MINUTES = RetentionRule(
    name="breaker-minutes",
    model="breakers.Minute",
    period=MINUTES_KEPT,
    since="minute",
    order="minute",
    tick="breakers.purge",
    why="How breakers stood by the minute; threshold rules look back as far at most.",
)
ALARMS = RetentionRule(
    name="breaker-alarms",
    model="breakers.Alarm",
    period=timedelta(days=35),
    where="closed_at < %(before)s",
    since="since",
    bounds=(8, 400),
    tick="breakers.purge",
    why="Outages of a provider that are over.",
    exempt="What is open.",
)
# States of forgotten instances, or of earlier boots.
STATES = RetentionRule(
    name="breaker-states",
    model="breakers.BreakerState",
    period=timedelta(days=1),
    where=f"changed_at < %(before)s AND NOT EXISTS (SELECT FROM {INSTANCES}"
    " WHERE i.id = it.instance AND i.boot = it.boot)",
    since="changed_at",
    tick="breakers.purge",
    why="What instances said last of their breakers.",
    exempt="Those of instances that run.",
)
RULES = (TRANSITIONS, MINUTES, ALARMS, STATES)

RETENTION_RULES.register(*RULES)
