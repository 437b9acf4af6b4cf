"""Retention of breaker tables: rules that have no code of their own, and lasting tables."""

from controlplane.core.retention import RETENTION_RULES, RetentionRule, keep_permanently

from .services import discovered

# Deleted by code of its own, which updates the board: `breakers.services.discovered`.
DISCOVERED = RetentionRule(
    name="unregistered-dependencies",
    model="breakers.Dependency",
    period=discovered.PURGE_SILENT_AFTER,
    where="document = '{}' AND version = 0 AND removed_at IS NULL"
    " AND registered_at < %(before)s"
    " AND NOT EXISTS (SELECT FROM breakers_override o WHERE o.dependency_id = it.id)"
    " AND NOT EXISTS (SELECT FROM breakers_breakerstate s JOIN core_instance i"
    " ON i.id = s.instance AND i.boot = s.boot"
    " WHERE s.dependency_id = it.id AND i.reported_at >= %(before)s)",
    since="registered_at",
    tick="breakers.purge",
    why="Names that nobody has registered; without a reporter they go after an hour.",
    exempt="What was registered, forced, or is reported.",
)

RETENTION_RULES.register(DISCOVERED)

keep_permanently("Who forced which breaker, and why, belongs to the proof.", "breakers.Override")
keep_permanently(
    "Set by people or files, until they take it away.",
    "breakers.Registry",
    "breakers.Service",
    "breakers.Channel",
)
keep_permanently("One row for each thing that is watched; it goes with it.", "breakers.Probe")
