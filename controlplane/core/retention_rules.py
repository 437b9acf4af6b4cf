"""Retention of Django's tables and of ticks: they are kept permanently."""

from controlplane.core.retention import keep_permanently

keep_permanently(
    "One row for each thing that runs; it goes with it.", "core.Tick", "core.Heartbeat"
)
keep_permanently(
    "Made by Django itself, with its tables.",
    "auth.Permission",
    "auth.Group",
    "auth.Group_permissions",
    "contenttypes.ContentType",
)
