"""How long the tables of breakers are kept: the rules that stand beside no other code, and what
lasts."""

# Each of these registers rules beside what it does.
from controlplane.core.retention import Rule, lasting, rule

from .services import discovered
from .states import minutes as _minutes  # noqa: F401

# Deleted by code of its own, which tells the board: `breakers.services.discovered`.
DISCOVERED = rule(
    Rule(
        name="unregistered-dependencies",
        model="breakers.Dependency",
        kept=discovered.PURGE_SILENT_AFTER,
        where="document = '{}' AND version = 0 AND removed_at IS NULL"
        " AND registered_at < %(before)s"
        " AND NOT EXISTS (SELECT FROM breakers_override o WHERE o.dependency_id = it.id)"
        " AND NOT EXISTS (SELECT FROM breakers_breakerstate s JOIN core_instance i"
        " ON i.id = s.instance AND i.boot = s.boot"
        " WHERE s.dependency_id = it.id AND i.reported_at >= %(before)s)",
        since="registered_at",
        tick="breakers.purge",
        why="Names that nobody has registered; without a reporter they go after an hour.",
        but="What was registered, forced, or is reported.",
    )
)

lasting("Who forced which breaker, and why, belongs to the proof.", "breakers.Override")
lasting(
    "Set by people or files, until they take it away.",
    "breakers.Registry",
    "breakers.Service",
    "breakers.Channel",
)
lasting("One row for each thing that is watched; it goes with it.", "breakers.Probe")
