"""Retention rule of the services in whose names tokens were used."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

TOKEN_CALLERS = RetentionRule(
    name="token-callers",
    model="core.TokenCaller",
    period=timedelta(days=30),
    where="greatest(used_at, refused_at) < %(before)s",
    since="greatest(used_at, refused_at)",
    tick="sign_ins.purge",
    why="To know which programs use a token before it is rotated or revoked.",
)

RETENTION_RULES.register(TOKEN_CALLERS)
