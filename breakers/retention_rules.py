"""The retention rule of discovered dependencies, and the tables that are kept permanently."""

from controlplane.core.instances.exports import PRESENT_BOOT
from controlplane.core.retention import RETENTION_RULES, RetentionRule, keep_permanently

from .services import discovery

# `breakers.services.discovery` deletes these rows, because open pages must be notified.
DISCOVERED = RetentionRule(
    name="unregistered-dependencies",
    model="breakers.Dependency",
    period=discovery.PURGE_SILENT_AFTER,
    where="document = '{}' AND version = 0 AND removed_at IS NULL"  # noqa: S608
    " AND registered_at < %(before)s"
    " AND NOT EXISTS (SELECT FROM breakers_override o WHERE o.dependency_id = it.id)"
    f" AND NOT EXISTS (SELECT FROM breakers_breakerstate s JOIN {PRESENT_BOOT}"
    " WHERE s.dependency_id = it.id AND i.reported_at >= %(before)s)",
    since="registered_at",
    tick="breakers.purge",
    why="Unregistered names; removed an hour after their last report.",
    exempt="Registered, forced or reported dependencies.",
)

RETENTION_RULES.register(DISCOVERED)

keep_permanently("Overrides are kept as evidence of who forced which breaker.", "breakers.Override")
keep_permanently(
    "Set and removed by people or configuration files.",
    "breakers.Registry",
    "breakers.Service",
    "breakers.Channel",
)
keep_permanently("One row per watched object, removed with it.", "breakers.Probe")
