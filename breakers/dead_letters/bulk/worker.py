"""The worker of a bulk job: for a few seconds, settle open intents, then remove the next letters.

Letters are declared, removed, settled and only then passed. A worker that dies leaves at most one
batch of intents, which the next one executes first; passed letters are never read again.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from django.db import transaction

from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import Departure, Replay
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.removals import settlement
from controlplane.core import canonical
from controlplane.core.actors import Actor, ActorType
from controlplane.core.jobs.claims import LeasedJob, LeaseLost
from controlplane.core.jobs.kinds import Probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live import change_notices

from . import breaker_gates, eligibility, selection
from .open_intents import ReplayHeld, raise_if_refused, settle_open_intents
from .rate_limiter import ReplayRateLimiter
from .selection import AT_ONCE, SelectedBatch
from .tally import ReplayChunk, ReplayTally, recount

SLICE_SECONDS = 3.0
SHORT_SLICE_SECONDS = 1.0
"""Length of a slice if other jobs run: it does not wait either, so that few threads are taken."""
NOTIFY_EVERY_SECONDS = 1.0
MAX_TRIES = 3
LARGE_BYTES = 1024 * 1024  # bytes


@dataclass
class ReplaySlice:
    """The work of one worker on a replay for a few seconds."""

    turn: LeasedJob
    step: JobStep
    replay: Replay
    began: datetime
    probe: Probe
    is_alone: bool
    limiter: ReplayRateLimiter
    chosen: LetterFilter
    tries: int = 0
    told_at: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> datetime:
        return self.began + timedelta(seconds=time.monotonic() - self._started)

    @property
    def seconds_left(self) -> float:
        most = SLICE_SECONDS if self.is_alone else SHORT_SLICE_SECONDS
        return most - (time.monotonic() - self._started)


def start_slice(turn: LeasedJob, step: JobStep, now: datetime, probe: Probe) -> ReplaySlice:
    """Return a slice that continues where the last one ended."""
    replay = Replay.objects.select_related("stream").get(pk=turn.job.pk)
    replay.job = turn.job
    kept = turn.job.checkpoint or {}
    due = kept.get("due", 0.0)
    if turn.job.state == Job.State.HOLDING:
        due = now.timestamp()  # Nothing is made up for.
    others = Job.objects.filter(
        kind=turn.job.kind, state=Job.State.RUNNING, finished_at=None
    ).exclude(pk=turn.job.pk)
    return ReplaySlice(
        turn=turn,
        step=step,
        replay=replay,
        began=now,
        probe=probe,
        is_alone=not others.exists(),
        limiter=ReplayRateLimiter(replay.rate_per_second, due or now.timestamp()),
        chosen=LetterFilter.from_mapping(replay.chosen),
        tries=kept.get("tries", 0),
    )


def requesting_actor(job: Job) -> Actor:
    """Return the actor who requested the job, in whose name letters leave."""
    kind, _, name = job.created_by.partition(":")
    return Actor(type=cast(ActorType, kind), name=name, user_id=job.creator_id)


def run_slice(work: ReplaySlice) -> bool:
    """Remove letters until the time is over; return True if all selected ones were read.

    Raises :class:`ReplayHeld`, :class:`LeaseLost` and :class:`ServerUnavailable`.
    """
    settle_open_intents(
        work.replay,
        work.now,
        work.probe,
        is_doubtful=work.step.attempts > 1,
        most_bytes=LARGE_BYTES if work.tries > MAX_TRIES else None,
    )
    if why := breaker_gates.describe_hold(work.replay, work.now):
        raise ReplayHeld(why)
    if work.turn.job.state == Job.State.HOLDING:
        work.turn.change(state=Job.State.RUNNING, hold_reason="")
    if not _catch_up_index(work):
        return False
    looked_for_holds = work.now
    while work.seconds_left > 0:
        if work.now - looked_for_holds > timedelta(seconds=1):
            looked_for_holds = work.now
            if why := breaker_gates.describe_hold(work.replay, work.now):
                raise ReplayHeld(why)
        work.turn.heartbeat(work.now)
        replay = work.replay
        looked = selection.read_batch(
            replay.stream,
            work.chosen,
            after=replay.position,
            until=replay.until,
            most=1 if work.tries else AT_ONCE,
        )
        work.probe("replay.looked")
        for chunk in _split_into_chunks(work, looked):
            if not _wait_for_permit(work, chunk):
                return False
            _remove_chunk(work, chunk)
        if not looked.more:
            return True
    return False


def _catch_up_index(work: ReplaySlice) -> bool:
    """Extend the index to all selected letters and count them; return True if it is complete.

    The last letter may be gone by now: then the index ends with the last one that exists.
    """
    replay = work.replay
    is_new = not work.turn.job.checkpoint
    if (work.chosen.uses_index or is_new) and replay.stream.indexed_to < replay.until:
        is_all = indexer.catch_up(replay.stream, work.now, seconds=SHORT_SLICE_SECONDS)
        replay.stream.refresh_from_db()
        end = min(replay.until, replay.stream.last)
        if not is_all and replay.stream.indexed_to < end:
            return False
    if is_new:
        meant = selection.filter_index(replay.stream, work.chosen)
        save_checkpoint(work, total=meant.filter(position__lte=replay.until).count())
    return True


def _split_into_chunks(work: ReplaySlice, looked: SelectedBatch) -> Iterator[ReplayChunk]:
    """Yield chunks of letters that leave together, by the requested rate."""
    most, chunk = work.limiter.batch_size(AT_ONCE), ReplayChunk()
    for entry in looked.entries:
        why = _skip_reason(work, entry)
        if why == "" and len(chunk.entries) == most:
            yield chunk
            chunk = ReplayChunk()
        chunk.add(entry, why)
    chunk.not_meant += looked.count - len(looked.entries)  # They are not there any more.
    chunk.position = looked.position
    yield chunk


def _skip_reason(work: ReplaySlice, entry: LetterEntry) -> str | None:
    """Return why the letter is skipped; empty if it leaves, None if it is not selected."""
    if not work.chosen.matches(entry):
        return None
    return eligibility.skip_reason(entry, work.replay.action, work.replay.most_retries)


def _wait_for_permit(work: ReplaySlice, chunk: ReplayChunk) -> bool:
    """Wait until the rate allows the chunk; return False if that is beyond this slice."""
    if not chunk.entries:
        return True
    seconds = work.limiter.seconds_to_wait(work.now.timestamp(), AT_ONCE)
    if not seconds:
        return True
    if not work.is_alone or seconds > work.seconds_left:
        return False
    time.sleep(seconds)
    return True


def _remove_chunk(work: ReplaySlice, chunk: ReplayChunk) -> None:
    counts = ReplayTally.from_counts(work.replay.counts)
    counts.pass_over(chunk)
    if chunk.entries:
        departures = _declare_intents(work, chunk)
        work.probe("replay.declared")
        outcomes = settlement.execute_intents(work.replay.stream, departures)
        work.probe("replay.carried_out")
        with transaction.atomic():
            settled = settlement.settle_and_count(
                work.replay.stream, departures, outcomes, work.now
            )
        work.probe("replay.settled")
        if any(one.kind == "refused" for one in outcomes.values()):
            recount(work.replay.pk)
        raise_if_refused(outcomes)
        work.limiter.record(len(departures), work.now.timestamp())
        counts.settle(settled, others=len(chunk.entries) - len(departures))
    work.replay.counts, work.replay.position = counts.as_dict(), chunk.position
    work.tries = 0
    save_checkpoint(work)
    work.probe("replay.passed_over")


def _declare_intents(work: ReplaySlice, chunk: ReplayChunk) -> list[Departure]:
    """Declare the chunk's intents, unless somebody has intervened or taken over the job."""
    job = work.turn.job
    return settlement.declare_intents(
        stream=work.replay.stream,
        entries=chunk.entries,
        action=work.replay.action,
        actor=requesting_actor(job),
        reason=job.reason,
        job=job,
        check=lambda: work.turn.heartbeat(work.now),
        now=work.now,
    )


def save_checkpoint(work: ReplaySlice, total: int | None = None) -> None:
    """Save the progress. If a person has intervened, the counts are made exact."""
    turn, replay, now = work.turn, work.replay, work.now
    looked_at = replay.counts["looked_at"]
    data: dict[str, float] = {"due": round(work.limiter.due, 3)}
    if work.tries:
        data["tries"] = work.tries
    try:
        with turn.together():
            turn.checkpoint(
                data,
                done=looked_at,
                total=max(total if total is not None else turn.job.total, looked_at),
                now=now,
                size=len(canonical.dumps(data)),
            )
            replay.save(update_fields=["position", "counts"])
            if work.step.attempts > 1:  # Whoever got further did not die of this step.
                work.step.attempts = 1
                work.step.save(update_fields=["attempts"])
            _notify_progress(work)
    except LeaseLost:
        recount(replay.pk)
        raise


def count_failed_try(work: ReplaySlice) -> None:
    """Count one more failed try of the next letter; after too many, skip it if it is large.

    Without this a job would stay forever before a letter that its server, though it answers
    otherwise, does not take or give in time. Its open intent is left to the sweeper.

    Raises :class:`LeaseLost`, :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    work.tries += 1
    replay = work.replay
    if work.tries > MAX_TRIES:
        found = selection.peek_next(
            replay.stream, work.chosen, after=replay.position, until=replay.until
        )
        if found is not None and found[1] > LARGE_BYTES:
            counts = ReplayTally.from_counts(replay.counts)
            counts.why[eligibility.TOO_SLOW] += 1
            replay.counts, replay.position = counts.as_dict(), found[0]
            work.tries = 0
    save_checkpoint(work)


def _notify_progress(work: ReplaySlice) -> None:
    if time.monotonic() - work.told_at >= NOTIFY_EVERY_SECONDS:
        work.told_at = time.monotonic()
        change_notices.notify_changed("dlq", f"job:{work.replay.pk}")
