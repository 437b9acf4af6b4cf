"""What is told of drills."""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import Wording

_LINES = (("What came of it", "said"), ("Why it was run", "reason"), ("By", "by"))

DRILLS: Mapping[str, Wording] = {
    "drill.passed": Wording("🎯", "{switch} is proven: its drill passed", _LINES),
    "drill.failed": Wording("⚠️", "The drill of {switch} failed", _LINES, severity="warning"),
    "drill.missed": Wording(
        "⏭️",
        "The drill of {switch} could not begin",
        (("Why not", "said"), ("Tried again", "next_at"), ("By", "by")),
        severity="warning",
    ),
}
