"""Worker of a bulk job: settles open removal intents, then removes letters for a few seconds.

Intents for a batch are declared, executed and settled before the position advances. A worker that
dies leaves at most one batch of open intents, which the next worker settles first.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from django.db import transaction

from breakers.dead_letters.letters.batches import batch_by_size
from breakers.dead_letters.letters.entries import Pairs
from breakers.dead_letters.letters.field_edits import FieldEdit
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import Departure, Replay
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers.reader import BUDGET
from breakers.dead_letters.removals import execution, intents, settlement
from controlplane.core import canonical
from controlplane.core.actors import Actor, ActorType
from controlplane.core.jobs.claims import LeasedJob, LeaseLost
from controlplane.core.jobs.kinds import Probe, no_probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live import change_notices

from . import breaker_gates, eligibility, selection
from .counts import ReplayChunk, ReplayCounts, recount_removals
from .rate_limiter import ReplayRateLimiter
from .selection import AT_ONCE, SelectedBatch

SLICE_SECONDS = 3.0
SHORT_SLICE_SECONDS = 1.0
"""Length of a slice while other jobs run; such a slice does not sleep, to free its thread."""
NOTIFY_EVERY_SECONDS = 1.0
MAX_TRIES = 3
LARGE_BYTES = 1024 * 1024  # bytes


class ReplayHeld(Exception):
    """Raised if no letter can be removed for now; its text is the hold reason."""


@dataclass
class ReplaySlice:
    """State of one worker while it works on a bulk job for a few seconds."""

    turn: LeasedJob
    step: JobStep
    replay: Replay
    began: datetime
    probe: Probe
    is_alone: bool
    limiter: ReplayRateLimiter
    chosen: LetterFilter
    edit: FieldEdit | None = None
    tries: int = 0
    notified_at: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> datetime:
        return self.began + timedelta(seconds=time.monotonic() - self._started)

    @property
    def seconds_left(self) -> float:
        most = SLICE_SECONDS if self.is_alone else SHORT_SLICE_SECONDS
        return most - (time.monotonic() - self._started)


def start_slice(turn: LeasedJob, step: JobStep, now: datetime, probe: Probe) -> ReplaySlice:
    """Return the state of a worker that continues at the job's last checkpoint."""
    replay = Replay.objects.select_related("stream").get(pk=turn.job.pk)
    replay.job = turn.job
    checkpoint = turn.job.checkpoint or {}
    due = checkpoint.get("due", 0.0)
    if turn.job.state == Job.State.HOLDING:
        due = now.timestamp()  # The time of a hold is not made up for.
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
        edit=FieldEdit.from_mapping(replay.edit) if replay.edit else None,
        tries=checkpoint.get("tries", 0),
    )


def run_slice(work: ReplaySlice) -> bool:
    """Work on a bulk job for a few seconds; return True if all its letters were processed.

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
    replay, gates_checked_at = work.replay, work.now
    while work.seconds_left > 0:
        if work.now - gates_checked_at > timedelta(seconds=1):
            gates_checked_at = work.now
            if why := breaker_gates.describe_hold(replay, work.now):
                raise ReplayHeld(why)
        work.turn.heartbeat(work.now)
        batch = selection.read_batch(
            replay.stream,
            work.chosen,
            after=replay.position,
            until=replay.until,
            most=1 if work.tries else AT_ONCE,
        )
        work.probe("replay.looked")
        for chunk in _split_into_chunks(work, batch):
            if not _wait_for_permit(work, chunk):
                return False
            _remove_chunk(work, chunk)
        if not batch.more:
            return True
    return False


def settle_open_intents(
    replay: Replay,
    now: datetime,
    probe: Probe = no_probe,
    *,
    is_doubtful: bool = False,
    most_bytes: int | None = None,
) -> None:
    """Execute and settle the removal intents that a dead worker left open, and recount the job.

    If there are none, the job is recounted only if `is_doubtful`: a worker may have died after
    settling some. Intents for letters larger than `most_bytes` are left to the intent sweeper.

    Raises :class:`ReplayHeld` if a removal is refused, and :class:`ServerUnavailable`; intents not
    settled by then stay open.
    """
    own = Departure.objects.filter(
        job=replay.job_id, state=Departure.State.INTENDED, position__gt=replay.position
    )
    if most_bytes is not None:
        own = own.filter(size_bytes__lte=most_bytes)
    try:
        sized = list(own.order_by("position").values_list("pk", "size_bytes"))
        for pks in batch_by_size(sized, max_bytes=BUDGET, max_items=AT_ONCE):
            departures = list(own.filter(pk__in=pks).order_by("position"))
            is_doubtful = True
            outcomes = execution.execute_intents(replay.stream, departures)
            with transaction.atomic():
                settlement.settle_intents(replay.stream, departures, outcomes, now)
            probe("replay.resumed")
            if refused := [one.why for one in outcomes.values() if one.kind == "refused"]:
                raise ReplayHeld(refused[0])
    finally:
        if is_doubtful:
            replay.counts = recount_removals(replay.pk).counts


def _catch_up_index(work: ReplaySlice) -> bool:
    """Index the letters up to the job's last position; return False if time did not suffice.

    Do nothing if the job is not new and its filter needs no index. For a new job, save the number
    of matching letters. If the last letter is gone by now, the index ends with the last existing
    one.
    """
    replay = work.replay
    is_new = not work.turn.job.checkpoint
    if (work.chosen.uses_index or is_new) and replay.stream.indexed_to < replay.until:
        is_complete = indexer.catch_up(replay.stream, work.now, seconds=SHORT_SLICE_SECONDS)
        replay.stream.refresh_from_db()
        end = min(replay.until, replay.stream.last)
        if not is_complete and replay.stream.indexed_to < end:
            return False
    if is_new:
        candidates = selection.filter_index(replay.stream, work.chosen)
        save_checkpoint(work, total=candidates.filter(position__lte=replay.until).count())
    return True


def _split_into_chunks(work: ReplaySlice, batch: SelectedBatch) -> Iterator[ReplayChunk]:
    """Yield the batch in chunks, each with no more removals than the rate allows at once."""
    most, chunk = work.limiter.batch_size(AT_ONCE), ReplayChunk()
    action, most_retries = work.replay.action, work.replay.most_retries
    for entry in batch.entries:
        why = None
        if work.chosen.matches(entry):
            why = eligibility.entry_skip_reason(
                entry, action=action, most_retries=most_retries, edit=work.edit
            )
        if why == "" and len(chunk.entries) == most:
            yield chunk
            chunk = ReplayChunk()
        chunk.add(entry, why)
    chunk.not_meant += batch.count - len(batch.entries)  # Deleted since they were indexed.
    chunk.position = batch.position
    yield chunk


def _wait_for_permit(work: ReplaySlice, chunk: ReplayChunk) -> bool:
    """Sleep until the rate limiter permits the chunk's removals, and return True.

    Return False at once if other jobs are waiting, or if the worker's time would run out.
    """
    wait = work.limiter.seconds_to_wait(work.now.timestamp(), AT_ONCE) if chunk.entries else 0.0
    if wait and (not work.is_alone or wait > work.seconds_left):
        return False
    time.sleep(wait)
    return True


def _remove_chunk(work: ReplaySlice, chunk: ReplayChunk) -> None:
    counts = ReplayCounts.from_counts(work.replay.counts)
    counts.add_skipped(chunk)
    if chunk.entries:
        job = work.turn.job
        kind, _, name = job.created_by.partition(":")
        departures = intents.declare_intents(
            stream=work.replay.stream,
            entries=chunk.entries,
            action=work.replay.action,
            actor=Actor(type=cast(ActorType, kind), name=name, user_id=job.creator_id),
            reason=job.reason,
            job=job,
            edits=_apply_edit(work, chunk),
            # Fails if a person has changed the job, or another worker has taken it over.
            check=lambda: work.turn.heartbeat(work.now),
            now=work.now,
        )
        work.probe("replay.declared")
        outcomes = execution.execute_intents(work.replay.stream, departures)
        work.probe("replay.carried_out")
        with transaction.atomic():
            settled = settlement.settle_intents(work.replay.stream, departures, outcomes, work.now)
        work.probe("replay.settled")
        if refused := [one.why for one in outcomes.values() if one.kind == "refused"]:
            recount_removals(work.replay.pk)
            raise ReplayHeld(refused[0])
        work.limiter.record(len(departures), work.now.timestamp())
        counts.add_settled(settled, others=len(chunk.entries) - len(departures))
    work.replay.counts, work.replay.position = counts.as_dict(), chunk.position
    work.tries = 0
    save_checkpoint(work)
    work.probe("replay.passed_over")


def _apply_edit(work: ReplaySlice, chunk: ReplayChunk) -> dict[str, Pairs]:
    """Return the edited messages of a chunk by entry id; empty if the job edits nothing."""
    if work.edit is None:
        return {}
    redaction = configured_redaction()
    edited = {entry.id: work.edit.apply(entry, redaction) for entry in chunk.entries}
    return {entry_id: pairs for entry_id, pairs in edited.items() if pairs is not None}


def save_checkpoint(work: ReplaySlice, total: int | None = None) -> None:
    """Save the job's position and counts.

    If the lease is lost, recount the job's removals and raise :class:`LeaseLost`.
    """
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
            if work.step.attempts > 1:  # Progress shows that the step does not kill its worker.
                work.step.attempts = 1
                work.step.save(update_fields=["attempts"])
            if time.monotonic() - work.notified_at >= NOTIFY_EVERY_SECONDS:
                work.notified_at = time.monotonic()
                change_notices.notify_changed("dlq", f"job:{replay.pk}")
    except LeaseLost:
        recount_removals(replay.pk)
        raise


def count_failed_try(work: ReplaySlice) -> None:
    """Count a failed attempt at the next letter; after too many, skip the letter if it is large.

    A server may respond but time out on one large letter, which would hold the job forever. The
    letter's open intent is left to the intent sweeper. Raises :class:`LeaseLost`,
    :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    work.tries += 1
    replay = work.replay
    if work.tries > MAX_TRIES:
        candidate = selection.peek_next(
            replay.stream, work.chosen, after=replay.position, until=replay.until
        )
        if candidate is not None and candidate[1] > LARGE_BYTES:
            counts = ReplayCounts.from_counts(replay.counts)
            counts.why[eligibility.TOO_SLOW] += 1
            replay.counts, replay.position = counts.as_dict(), candidate[0]
            work.tries = 0
    save_checkpoint(work)
