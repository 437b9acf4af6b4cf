"""Numbers of the batches of a relay's process that were counted. Pure."""

from typing import NamedTuple

from .report_merge import REMEMBERED


class CountedBatches(NamedTuple):
    """The batches of a process that are counted: bit n of `bits` stands for `seq - n`."""

    seq: int
    bits: int

    def has(self, seq: int) -> bool:
        """Return True if the batch `seq` is certain to be counted."""
        age = self.seq - seq
        return 0 <= age <= REMEMBERED and bool(self.bits >> age & 1)

    def add(self, seq: int) -> "CountedBatches | None":
        """Return the batches with the batch `seq` added; None if it is counted, or may be."""
        age = self.seq - seq
        if age < 0:
            bits = self.bits << min(-age, REMEMBERED + 1) | 1
            return CountedBatches(seq, bits & ((1 << (REMEMBERED + 1)) - 1))
        if age > REMEMBERED or self.has(seq):
            return None
        return CountedBatches(self.seq, self.bits | 1 << age)
