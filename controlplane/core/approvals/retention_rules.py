"""Retention rule of approvals: they are kept permanently."""

from controlplane.core.retention import keep_permanently

keep_permanently("Who approved or reviewed what belongs to the proof.", "core.Approval")
