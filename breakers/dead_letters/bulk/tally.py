"""Counts of a bulk job: removed letters by the archive, the others as they are passed."""

from collections import Counter
from collections.abc import Mapping
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
    """Letters that leave together, and the reasons of those between them that are skipped.

    `position` is the end of all of them.
    """

    entries: list[LetterEntry] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)
    not_meant: int = 0
    position: str = ""

    def add(self, entry: LetterEntry, why: str | None) -> None:
        """Add an entry with its skip reason: empty if it leaves, None if it is not selected."""
        self.position = entry.position
        if why is None:
            self.not_meant += 1
        elif why:
            self.why[why] += 1
        else:
            self.entries.append(entry)


@dataclass
class ReplayTally:
    """Letters `done`, `gone`, skipped by reason in `why`, and not selected.

    `gone` were removed by somebody else.
    """

    done: int = 0
    gone: int = 0
    why: Counter[str] = field(default_factory=Counter)
    not_meant: int = 0

    @classmethod
    def from_counts(cls, counts: Mapping[str, Any]) -> Self:
        return cls(
            done=counts.get("done", 0),
            gone=counts.get("gone", 0),
            why=Counter(counts.get("why", {})),
            not_meant=counts.get("not_meant", 0),
        )

    def pass_over(self, chunk: ReplayChunk) -> None:
        self.why.update(chunk.why)
        self.not_meant += chunk.not_meant

    def settle(self, settled: Mapping[str, int], *, others: int) -> None:
        """Count the outcome of a chunk; `others` have an intent of somebody else."""
        self.done += settled.get("done", 0)
        self.gone += settled.get("gone", 0)
        self.why[eligibility.IN_FLIGHT] += others + settled.get("repeated", 0)

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


def count_archived(replay: Replay) -> dict[str, Any]:
    """Return the counts, with those of removed letters read from the archive."""
    tally = ReplayTally.from_counts(replay.counts)
    grouped = Departure.objects.filter(job=replay.job_id).values("state").annotate(n=Count("pk"))
    found = {row["state"]: row["n"] for row in grouped}
    tally.done = sum(found.get(state, 0) for state in LEFT)
    tally.gone = found.get(Departure.State.GONE, 0)
    return tally.as_dict()


def recount(job_id: int) -> Replay:
    """Write down the counts of removed letters by the archive."""
    with transaction.atomic():
        rows = Replay.objects.select_related("stream").select_for_update(of=("self",))
        replay = rows.get(pk=job_id)
        replay.counts = count_archived(replay)
        replay.save(update_fields=["counts"])
        return replay
