"""Tables of teams and of the directory, which are kept permanently."""

from controlplane.core.retention import keep_permanently

keep_permanently(
    "Set and removed by people; the audit trail has each change.",
    "core.Team",
    "core.Membership",
    "core.Ownership",
    "core.AuthorityRule",
)
keep_permanently(
    "Set and removed by the identity provider.",
    "core.DirectoryUser",
    "core.DirectoryGroup",
    "core.DirectoryGroup_members",
)
