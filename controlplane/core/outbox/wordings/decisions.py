"""What is told to people who have to decide, to sign or to look."""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import Wording

DECISIONS: Mapping[str, Wording] = {
    "approval.requested": Wording(
        "✋",
        "Approval wanted: {summary}",
        (("Asked by", "by"), ("Reason", "reason"), ("Risk", "risk"), ("Lapses", "lapses_at")),
        severity="warning",
        buttons=("approve", "deny"),
    ),
    "approval.decided": Wording(
        "☑️",
        "{outcome}: {summary}",
        (
            ("Decided by", "decided_by"),
            ("Comment", "comment"),
            ("Asked by", "by"),
            ("Reason", "reason"),
            ("Replaced by approval", "replaced_by"),
        ),
    ),
    "review.opened": Wording(
        "🔨",
        "GLASS BROKEN, a review waits for a second person: {summary}",
        (("By", "by"), ("Rule overridden", "rule"), ("Reason", "reason")),
        severity="critical",
        buttons=("sign",),
    ),
    "review.waiting": Wording(
        "🔨",
        "Unsigned review: {summary}",
        (("By", "by"), ("Rule overridden", "rule"), ("Reason", "reason"), ("Since", "said")),
        severity="warning",
        buttons=("sign", "acknowledge"),
    ),
    "review.reopened": Wording(
        "🔨",
        "Review opened again, still unsigned: {summary}",
        (("By", "by"), ("Rule overridden", "rule"), ("Reason", "reason"), ("Since", "said")),
        severity="critical",
        buttons=("sign",),
    ),
    "review.signed": Wording(
        "☑️",
        "Review signed: {summary}",
        (
            ("Signed by", "decided_by"),
            ("Comment", "comment"),
            ("Glass broken by", "by"),
            ("Reason", "reason"),
        ),
    ),
    "interaction.answered": Wording("💬", "{said}", ()),
    "escalation.step": Wording(
        "📣",
        "{title}",
        (
            ("Told now", "now_told"),
            ("Told before", "told_before"),
            ("Reaches nobody", "not_reached"),
            ("Acknowledged", "acknowledged"),
            ("About it", "about"),
            ("Waiting since", "opened_at"),
        ),
        severity="warning",
        buttons=("acknowledge",),
    ),
    "escalation.listing": Wording(
        "📣",
        "{count} things wait for somebody to acknowledge them",
        (("They are", "list"), ("The first since", "opened_at")),
        severity="warning",
    ),
    "target.test": Wording(
        "🔔",
        "A test for {target}: if you read this, it works",
        (("Sent by", "by"), ("To do", "said")),
    ),
}
