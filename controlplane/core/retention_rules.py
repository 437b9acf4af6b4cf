"""Tables that are kept permanently: the audit trail, approvals, and tables of few rows."""

from controlplane.core.retention import keep_permanently

keep_permanently("Proof of who did what; nothing of it can be deleted.", "core.AuditEntry")
keep_permanently("Who approved or reviewed what belongs to the proof.", "core.Approval")
keep_permanently("What people wrote about alerts and episodes.", "core.Comment")
keep_permanently("At most 200 of each person, who can remove them.", "core.Favorite")
keep_permanently("One row.", "core.AuditRound", "core.Degradation", "core.FirstStepsState")
keep_permanently("Until the sample configuration is cleared.", "core.SampleEntry")
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
