"""The refusal of a safety rule, as a caller gets it."""

from collections.abc import Sequence
from dataclasses import asdict

from controlplane.core.errors import Conflict
from switches.rules.judge import Refusal


class SafetyRefused(Conflict):
    """A rule is in the way; `extra` has the first `rule` and its `would_pass`, and all `refusals`.

    `instead` tells what was wrong with the attempt to override it, if there was one.
    """

    slug = "safety-refused"
    title = "A safety rule refuses this"

    def __init__(self, refusals: Sequence[Refusal], *, instead: str = "") -> None:
        first = refusals[0]
        said = " ".join(f"“{one.rule}” refuses: {one.detail} {one.would_pass}" for one in refusals)
        super().__init__(
            f"{instead} {said}".strip(),
            rule=first.rule,
            would_pass=first.would_pass,
            refusals=[asdict(one) for one in refusals],
        )
        self.refusals = list(refusals)
