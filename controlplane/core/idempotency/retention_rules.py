"""Retention of idempotency keys."""

from datetime import timedelta

from controlplane.core.retention import RETENTION_RULES, RetentionRule

LIFETIME = timedelta(hours=24)

IDEMPOTENCY_KEYS = RetentionRule(
    name="idempotency-keys",
    model="core.IdempotencyKey",
    period=LIFETIME,
    where="created_at <= %(before)s",
    since="created_at",
    order="created_at",
    tick="idempotency.purge",
    why="The API repeats the first response to a key for 24 hours.",
)

RETENTION_RULES.register(IDEMPOTENCY_KEYS)
