"""What a bulk job has done, counted: what left by what the archive says, the rest as it went by."""

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
    """Letters that leave together, and those between them that stay, by why not; others of those
    looked at are not meant. `position` is how far all of that goes."""

    entries: list[LetterEntry] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)
    not_meant: int = 0
    position: str = ""

    def add(self, entry: LetterEntry, why: str | None) -> None:
        """An entry, and why it stays: empty if it leaves, None if it is not meant."""
        self.position = entry.position
        if why is None:
            self.not_meant += 1
        elif why:
            self.why[why] += 1
        else:
            self.entries.append(entry)


@dataclass
class ReplayTally:
    """`done` have left, `gone` somebody else had taken away, the rest stay: by `why`, or as they
    are not meant."""

    done: int = 0
    gone: int = 0
    why: Counter[str] = field(default_factory=Counter)
    not_meant: int = 0

    @classmethod
    def of(cls, counts: Mapping[str, Any]) -> Self:
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
        """What came of a chunk; `others` were about to leave by somebody else."""
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
    """Its counts, with what has left by this job as the archive has it now."""
    tally = ReplayTally.of(replay.counts)
    grouped = Departure.objects.filter(job=replay.job_id).values("state").annotate(n=Count("pk"))
    found = {row["state"]: row["n"] for row in grouped}
    tally.done = sum(found.get(state, 0) for state in LEFT)
    tally.gone = found.get(Departure.State.GONE, 0)
    return tally.as_dict()


def recount(job_id: int) -> Replay:
    """Write down what has left by now, whoever works on the job."""
    with transaction.atomic():
        rows = Replay.objects.select_related("stream").select_for_update(of=("self",))
        replay = rows.get(pk=job_id)
        replay.counts = count_archived(replay)
        replay.save(update_fields=["counts"])
        return replay
