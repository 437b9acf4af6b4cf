"""The error of a change that safety rules refuse."""

from collections.abc import Sequence
from dataclasses import asdict

from controlplane.core.errors import Conflict

from .evaluation import Refusal


class SafetyRefused(Conflict):
    """Safety rules refuse the change.

    `extra` has the first `rule` with its `would_pass`, and all `refusals`. `instead` is the error
    of the attempt to override them, if there was one.
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
