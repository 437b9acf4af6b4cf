"""Error for changes that safety rules refuse."""

from collections.abc import Sequence
from dataclasses import asdict

from controlplane.core.errors import Conflict

from .evaluation import Refusal


class SafetyRefused(Conflict):
    """Raised if safety rules refuse a change.

    `extra` has the first `rule` with its `would_pass`, and all `refusals`. `instead` describes
    a failed attempt to override them.
    """

    slug = "safety-refused"
    title = "A safety rule refuses this"

    def __init__(self, refusals: Sequence[Refusal], *, instead: str = "") -> None:
        first = refusals[0]
        text = " ".join(f"“{one.rule}” refuses: {one.detail} {one.would_pass}" for one in refusals)
        super().__init__(
            f"{instead} {text}".strip(),
            rule=first.rule,
            would_pass=first.would_pass,
            refusals=[asdict(one) for one in refusals],
        )
        self.refusals = list(refusals)
