"""Result of a bulk job: what happened to its letters, as far as is known."""

from dataclasses import dataclass

from breakers.dead_letters.models import Replay
from controlplane.core.jobs.models import Job

from .replays import NO_COUNTS, RETRY


@dataclass(frozen=True)
class ReplayResult:
    """A short text, such as `20 sent, 20 failed again`, with an icon and the tone of its color.

    `word` is the state of the job in one or two words.
    """

    text: str
    icon: str
    word: str
    tone: str

    @property
    def bar(self) -> str:
        """The tone of the job's progress bar."""
        return {"overdue": "failed", "pending": "holding"}.get(self.tone, "ramp")


def describe_result(replay: Replay) -> ReplayResult | None:
    """Return the result of a retry that has sent letters; None for any other bulk job.

    A sent message is never called a success: its consumers may still be working on it.
    """
    sent = {**NO_COUNTS, **replay.counts}["done"]
    if replay.action != RETRY or not (sent or replay.failed_again):
        return None
    failed = replay.failed_again
    sent = max(sent, failed)  # Counts are saved a moment later than letters may be back.
    if not failed:
        return ReplayResult(f"{sent:,} sent, none failed again so far", "info", "Sent", "quiet")
    text = f"{sent:,} sent, {failed:,} failed again"
    if failed == sent and replay.job.state != Job.State.RUNNING:
        return ReplayResult(text, "critical", "All failed again", "overdue")
    return ReplayResult(text, "warning", "Some failed again", "pending")
