"""Retention rule of emergency codes."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

EMERGENCY_CODES = RetentionRule(
    name="emergency-codes",
    model="core.EmergencyCode",
    period=timedelta(days=400),
    where="revoked_at < %(before)s",
    since="created_at",
    tick="sign_ins.purge",
    why="Hashes of replaced codes, to check emergency orders that arrive late.",
    exempt="Codes in use.",
)

RETENTION_RULES.register(EMERGENCY_CODES)
