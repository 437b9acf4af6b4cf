"""What is told of the records and of the outbox itself."""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import MAX_LISTED, Wording

UPKEEP: Mapping[str, Wording] = {
    "report.ready": Wording(
        "📋",
        "Weekly report {week}{kind}: {headline}",
        (
            ("First", "line_1"),
            ("Then", "line_2"),
            ("And", "line_3"),
            ("Also", "line_4"),
            ("In numbers", "counts"),
            ("Environment", "environment"),
            ("Audit anchor", "anchor"),
        ),
    ),
    "report.unsigned": Wording(
        "🖊️",
        "Weekly report {week} is not signed off yet: {headline}",
        (("First", "line_1"), ("Then", "line_2"), ("In numbers", "counts")),
        severity="warning",
    ),
    "report.signed": Wording(
        "🖋️",
        "Weekly report {week} signed off",
        (("By", "by"), ("Comment", "comment")),
    ),
    "audit.anchored": Wording(
        "⚓",
        "Audit trail anchored at row {id}",
        (("Hash", "hash"), ("At", "at")),
    ),
    "outbox.backlog": Wording(
        "📬",
        "{pending} messages wait to go out",
        (("What to do", "said"), ("The oldest waits since", "waiting_since_at")),
        severity="critical",
        buttons=("acknowledge",),
    ),
    "outbox.drained": Wording(
        "📭",
        "The outbox has caught up: {pending} messages wait",
        (("There were too many since", "since_at"),),
    ),
    "outbox.digest": Wording(
        "📚",
        "{count} reminders at once",
        (*((f"{number + 1}", f"told_{number}") for number in range(MAX_LISTED)), ("And", "more")),
    ),
}
