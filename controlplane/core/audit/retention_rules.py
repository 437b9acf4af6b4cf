"""Retention rules of the audit trail: it is kept permanently."""

from controlplane.core.retention import keep_permanently

keep_permanently("Proof of who did what; nothing of it can be deleted.", "core.AuditEntry")
keep_permanently("One row.", "core.AuditRound")
