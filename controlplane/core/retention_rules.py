"""Permanent retention of Django's own tables, ticks and heartbeats."""

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
