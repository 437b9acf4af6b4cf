"""Numbers of removed and skipped letters of a bulk job.

Removed letters can be counted again from the archive, skipped letters only while they are read.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from django.db import transaction
from django.db.models import Count

from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.models import Departure, Replay
from breakers.dead_letters.removals.settlement import LEFT

from . import eligibility


@dataclass
class ReplayChunk:
    """Letters that a bulk job removes together, with counts of those in between that it skips.

    `why` counts skipped letters by reason, `not_meant` letters that don't match the filter.
    `position` is the position of the last letter, removed or not.
    """

    entries: list[LetterEntry] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)
    not_meant: int = 0
    position: str = ""

    def add(self, entry: LetterEntry, why: str | None) -> None:
        """Add a letter, to be removed if `why` is empty, otherwise only counted.

        A text in `why` is the reason to skip the letter; None means that it does not match the
        filter.
        """
        self.position = entry.position
        if why is None:
            self.not_meant += 1
        elif why:
            self.why[why] += 1
        else:
            self.entries.append(entry)


@dataclass
class ReplayCounts:
    """Numbers of a bulk job's letters by outcome.

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
        """Add the settled removals of a chunk, by kind: `done`, `gone` or `repeated`.

        `others` is the number of its letters that another job or actor is removing.
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
    """Recount a job's removed letters from the archive, save the counts, and return the job."""
    rows = Replay.objects.select_related("stream").select_for_update(of=("self",))
    replay = rows.get(pk=job_id)
    counts = ReplayCounts.from_counts(replay.counts)
    grouped = Departure.objects.filter(job=job_id).values("state").annotate(n=Count("pk"))
    by_state = {row["state"]: row["n"] for row in grouped}
    counts.done = sum(by_state.get(state, 0) for state in LEFT)
    counts.gone = by_state.get(Departure.State.GONE, 0)
    replay.counts = counts.as_dict()
    replay.save(update_fields=["counts"])
    return replay
