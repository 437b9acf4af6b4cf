"""Tables that are kept permanently: the audit trail, approvals, and tables of few rows."""

from controlplane.core.retention import keep_permanently

keep_permanently("Evidence of who did what; can't be deleted.", "core.AuditEntry")
keep_permanently("Evidence of who approved or reviewed what.", "core.Approval")
keep_permanently("Comments on alerts and episodes.", "core.Comment")
keep_permanently("Favorites, at most 200 per person, who can remove them.", "core.Favorite")
keep_permanently("One row.", "core.AuditRound", "core.Degradation", "core.FirstStepsState")
keep_permanently("Until the sample configuration is cleared.", "core.SampleEntry")
keep_permanently("One row per running process, removed with it.", "core.Tick", "core.Heartbeat")
keep_permanently(
    "Created by Django with its own tables.",
    "auth.Permission",
    "auth.Group",
    "auth.Group_permissions",
    "contenttypes.ContentType",
)
