"""Names of dead letter streams. Pure."""

from dataclasses import dataclass

PLACEHOLDER = "{stream}"


@dataclass(frozen=True)
class Names:
    """A pair of name patterns: `dead` for dead letter streams, `origin` for their source streams.

    Both contain `{stream}` once, which stands for the same text in both, as in the console's
    `DLQ_PATTERNS`. A hash tag is preserved: the dead letters of `axiom:{events}` are
    `axiom:dlq:{events}`, in the same cluster slot. Raises :class:`ValueError` for an invalid pair.
    """

    dead: str = f"axiom:dlq:{PLACEHOLDER}"
    origin: str = f"axiom:{PLACEHOLDER}"

    def __post_init__(self) -> None:
        once = self.dead.count(PLACEHOLDER) == 1 and self.origin.count(PLACEHOLDER) == 1
        if not once or self.dead == self.origin:
            raise ValueError(
                f"{self.dead!r} and {self.origin!r} must each contain {PLACEHOLDER} once, and must"
                " differ"
            )

    @classmethod
    def parse(cls, text: str) -> "Names":
        """Parse `axiom:dlq:{stream}=axiom:{stream}`. Raises :class:`ValueError`."""
        dead, _, origin = text.partition("=")
        return cls(dead, origin)

    def dead_of(self, origin: str) -> str:
        """Return the dead letter stream of the stream `origin`.

        Raises :class:`ValueError` if `origin` does not match its pattern.
        """
        before, _, after = self.origin.partition(PLACEHOLDER)
        middle = len(origin) - len(before) - len(after)
        if middle < 1 or not (origin.startswith(before) and origin.endswith(after)):
            raise ValueError(
                f"{origin!r} does not match {self.origin!r}: pass names= or dead_stream="
            )
        return self.dead.replace(PLACEHOLDER, origin[len(before) : len(before) + middle])
