"""Which stream takes the dead letters of which. Pure."""

from dataclasses import dataclass

PLACE = "{stream}"


@dataclass(frozen=True)
class Names:
    """`dead` names the streams of dead letters and `origin` where they come from; both have one
    `{stream}`, which stands for the same text in both, as in the console's `DLQ_PATTERNS`.

    A hash tag comes along: the dead letters of `axiom:{events}` are `axiom:dlq:{events}`, in the
    same slot of a cluster. Raises :class:`ValueError` for a pair that can't be.
    """

    dead: str = f"axiom:dlq:{PLACE}"
    origin: str = f"axiom:{PLACE}"

    def __post_init__(self) -> None:
        once = self.dead.count(PLACE) == 1 and self.origin.count(PLACE) == 1
        if not once or self.dead == self.origin:
            raise ValueError(
                f"{self.dead!r} and {self.origin!r}: each needs {PLACE} once, and they must differ"
            )

    @classmethod
    def parse(cls, text: str) -> "Names":
        """Of `axiom:dlq:{stream}=axiom:{stream}`. Raises :class:`ValueError`."""
        dead, _, origin = text.partition("=")
        return cls(dead, origin)

    def dead_of(self, origin: str) -> str:
        """The stream for the dead letters of `origin`. Raises :class:`ValueError`: another's."""
        before, _, after = self.origin.partition(PLACE)
        middle = len(origin) - len(before) - len(after)
        if middle < 1 or not (origin.startswith(before) and origin.endswith(after)):
            raise ValueError(
                f"{origin!r} is not named like {self.origin!r}: say names= or dead_stream="
            )
        return self.dead.replace(PLACE, origin[len(before) : len(before) + middle])
