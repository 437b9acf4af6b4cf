"""What is told to one person about how they come in."""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import Wording

ENTRY: Mapping[str, Wording] = {
    "user.reset_asked": Wording(
        "🔑",
        "A new password for {username}",
        (
            ("What to do", "said"),
            ("Asked from", "ip"),
            ("If it was not you", "otherwise"),
        ),
    ),
}
