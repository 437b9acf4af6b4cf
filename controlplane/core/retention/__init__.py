"""Retention of rows: rules by table, and the deletion of older rows."""

from controlplane.core.retention.rules import (
    RETENTION_RULES,
    RetentionRule,
    keep_permanently,
    purge,
    purge_by_statements,
)

__all__ = [
    "RETENTION_RULES",
    "RetentionRule",
    "keep_permanently",
    "purge",
    "purge_by_statements",
]
