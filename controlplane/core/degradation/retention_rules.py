"""Retention of the degradation level: it is kept permanently."""

from controlplane.core.retention import keep_permanently

keep_permanently("One row.", "core.Degradation")
