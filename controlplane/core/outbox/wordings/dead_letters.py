"""What is told of dead letters: streams that fill up, and letters that left by the hundred.

Facts: `stream` (`server/name`), `depth`, `limit`, `since_at`, `growth` (letters a minute), `worst`
(what most of them failed of), `origin`; of a bulk job `done`, `gone`, `skipped`, `why` (words),
`chosen` (words), `by`, `approved_by`, `reason`; and `path` of the page.
"""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import Wording

DEAD_LETTERS: Mapping[str, Wording] = {
    "dlq.backlog": Wording(
        "📮",
        "{depth} dead letters in {stream}",
        (
            ("More than", "limit"),
            ("Since", "since_at"),
            ("Growing by, a minute", "growth"),
            ("Most of them", "worst"),
            ("They came from", "origin"),
            ("What to do", "to_do"),
        ),
        severity="warning",
    ),
    "dlq.recovered": Wording(
        "🌤️",
        "Dead letters left in {stream}: {depth}",
        (("It was more than", "limit"), ("Since", "since_at"), ("Why", "why")),
    ),
    "dlq.replayed": Wording(
        "📬",
        "{stream}: {done} dead letters {did}",
        (
            ("Chosen", "chosen"),
            ("Gone meanwhile", "gone"),
            ("Left where they were", "skipped"),
            ("Because", "why"),
            ("By", "by"),
            ("Reason", "reason"),
        ),
    ),
    "dlq.purged": Wording(
        "🗑️",
        "{stream} purged: {done} dead letters, kept in the archive",
        (
            ("Chosen", "chosen"),
            ("Gone meanwhile", "gone"),
            ("Left where they were", "skipped"),
            ("By", "by"),
            ("Approved by", "approved_by"),
            ("Reason", "reason"),
        ),
        severity="warning",
    ),
}
"""`did` of `dlq.replayed` is `retried` or `discarded`."""
