"""What is told of machines that stop traffic, or ask for it."""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import Wording

MACHINES: Mapping[str, Wording] = {
    "trip.tripped": Wording(
        "🤖",
        "{source} stopped {switch}",
        (("By", "by"), ("Reason", "reason"), ("Allowed", "why")),
    ),
    "trip.engaged": Wording(
        "🤖",
        "{source} asks to stop {switch} too",
        (("By", "by"), ("Reason", "reason"), ("But", "why")),
    ),
    "trip.resolved": Wording(
        "🌤️",
        "The alert has resolved; {switch} stays engaged until somebody releases it",
        (("Alert", "source"), ("Was", "reason")),
    ),
    "trip.waits": Wording(
        "🙋",
        "{source} asks to stop {switch}: a person decides",
        (("Reason", "reason"), ("Why a person", "why"), ("By", "by")),
        severity="critical",
        buttons=("acknowledge",),
    ),
    "trip.refused": Wording(
        "✋",
        "{source} was not allowed to stop {switch}",
        (("Why not", "why"), ("Reason", "reason"), ("By", "by")),
        severity="warning",
    ),
    "trip_policy.changed": Wording(
        "📐",
        "What machines may stop was changed",
        (("Policies", "said"), ("By", "by")),
        severity="warning",
    ),
}
