"""Counts of a bulk job.

Removed letters are counted in the archive, skipped letters when they are read.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from django.db import transaction
from django.db.models import Count

from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.models import Departure, Replay

from . import eligibility

LEFT = (Departure.State.DONE, Departure.State.RESTORING, Departure.State.RESTORED)


@dataclass
class ReplayChunk:
    """Letters that are removed together, and the skip reasons of letters read between them.

    `position` is the position of the last letter in the chunk, removed or skipped.
    """

    entries: list[LetterEntry] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)
    not_meant: int = 0
    position: str = ""

    def add(self, entry: LetterEntry, why: str | None) -> None:
        """Add an entry with its skip reason: empty to remove it, None if it does not match."""
        self.position = entry.position
        if why is None:
            self.not_meant += 1
        elif why:
            self.why[why] += 1
        else:
            self.entries.append(entry)


@dataclass
class ReplayTally:
    """Numbers of letters by outcome.

    `done` were removed by the job, `gone` by another Redis client; `why` counts skipped letters by
    reason, `not_meant` letters that don't match the filter.
    """

    done: int = 0
    gone: int = 0
    why: Counter[str] = field(default_factory=Counter)
    not_meant: int = 0

    @classmethod
    def from_counts(cls, counts: Mapping[str, Any]) -> Self:
        numbers = {name: counts.get(name, 0) for name in ("done", "gone", "not_meant")}
        return cls(**numbers, why=Counter(counts.get("why", {})))

    def add_skipped(self, chunk: ReplayChunk) -> None:
        self.why.update(chunk.why)
        self.not_meant += chunk.not_meant

    def add_settled(self, settled: Mapping[str, Sequence[Departure]], *, others: int) -> None:
        """Add the outcome of a chunk.

        `others` is the number of letters that another job or actor is removing.
        """
        self.done += len(settled["done"])
        self.gone += len(settled["gone"])
        self.why[eligibility.IN_FLIGHT] += others + len(settled["repeated"])

    def as_dict(self) -> dict[str, Any]:
        why = {name: number for name, number in sorted(self.why.items()) if number}
        skipped = sum(why.values())
        return {
            "done": self.done,
            "gone": self.gone,
            "skipped": skipped,
            "why": why,
            "not_meant": self.not_meant,
            "looked_at": self.done + self.gone + skipped + self.not_meant,
        }


@transaction.atomic
def recount_removals(job_id: int) -> Replay:
    """Recalculate and save the counts of removed letters from the archive."""
    rows = Replay.objects.select_related("stream").select_for_update(of=("self",))
    replay = rows.get(pk=job_id)
    tally = ReplayTally.from_counts(replay.counts)
    grouped = Departure.objects.filter(job=job_id).values("state").annotate(n=Count("pk"))
    by_state = {row["state"]: row["n"] for row in grouped}
    tally.done = sum(by_state.get(state, 0) for state in LEFT)
    tally.gone = by_state.get(Departure.State.GONE, 0)
    replay.counts = tally.as_dict()
    replay.save(update_fields=["counts"])
    return replay
