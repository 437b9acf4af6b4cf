"""Retention of targets and routes: they are kept permanently."""

from controlplane.core.retention import keep_permanently

keep_permanently(
    "Set by people, until they take it away.",
    "core.Target",
    "core.OnCallMember",
    "core.EscalationStep",
    "core.Route",
)
