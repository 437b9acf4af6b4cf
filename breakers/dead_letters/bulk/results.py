"""Results of bulk jobs: what happened to their letters, as far as is known."""

from collections.abc import Mapping, Sequence

from breakers.dead_letters.models import Replay
from controlplane.core.jobs.kinds import JobResult
from controlplane.core.jobs.models import Job

from .replays import NO_COUNTS, RETRY


def load_results(jobs: Sequence[Job]) -> Mapping[int, JobResult]:
    """Return the results of the retries among these bulk jobs, by id, in one query."""
    replays = Replay.objects.filter(job__in=jobs).select_related("job")
    found = {replay.pk: describe_result(replay) for replay in replays}
    return {pk: result for pk, result in found.items() if result is not None}


def describe_result(replay: Replay) -> JobResult | None:
    """Return the result of a retry that has sent letters; None for any other bulk job.

    A sent message is never called a success: its consumers may still be working on it.
    """
    sent = {**NO_COUNTS, **replay.counts}["done"]
    if replay.action != RETRY or not (sent or replay.failed_again):
        return None
    failed = replay.failed_again
    sent = max(sent, failed)  # Counts are saved a moment later than letters may be back.
    if not failed:
        return JobResult(f"{sent:,} sent, none failed again so far", "info", "Sent", "quiet")
    text = f"{sent:,} sent, {failed:,} failed again"
    if failed == sent and replay.job.state != Job.State.RUNNING:
        return JobResult(text, "critical", "All failed again", "overdue")
    return JobResult(text, "warning", "Some failed again", "pending")
