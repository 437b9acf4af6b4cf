"""The two steps of a bulk job: remove the letters, then record the result.

An open breaker, or a Redis server that is unavailable or refuses, holds the job instead of failing
it, since waiting letters are not lost.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from breakers.dead_letters.bulk.replays import KIND, PURGE, RETRY, SCOPE, TICK
from breakers.dead_letters.models import Departure, Replay
from breakers.dead_letters.redis_servers import servers
from breakers.dead_letters.redis_servers.servers import (
    RedisServer,
    ServerRefused,
    ServerUnavailable,
)
from breakers.dead_letters.removals import execution, settlement
from controlplane.core.actions import Action
from controlplane.core.actors import Actor, system_actor
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.jobs import control, effects, endings, kinds, stepwise
from controlplane.core.jobs.claims import LeasedJob
from controlplane.core.jobs.kinds import Probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.jobs.stepwise import StepContinues, StepKind, StepPassed
from controlplane.core.live import change_notices
from controlplane.core.outbox import services as outbox

from .bulk import breaker_gates, eligibility, results, worker
from .bulk.counts import recount_removals
from .bulk.selection import AT_ONCE
from .bulk.worker import ReplayHeld, ReplaySlice, settle_open_intents

ACTOR = system_actor("dead-letters")
LOOK_AGAIN = timedelta(seconds=2)
AWAY_AGAIN = timedelta(seconds=10)
"""Time for which jobs don't contact an unavailable server, since each attempt takes seconds."""
AT_A_TIME = 1
"""Jobs claimed at once by one thread."""
DID = {RETRY: "retried", "discard": "discarded", PURGE: "purged"}

_away: dict[RedisServer, tuple[datetime, str]] = {}
"""Unavailable servers: the time until which this process does not contact them, and the error."""


def _run_replay(
    turn: LeasedJob, step: JobStep, now: datetime, probe: Probe
) -> StepPassed | StepContinues:
    work = worker.start_slice(turn, step, now, probe)
    until, error_text = _away.get(servers.get_server(work.replay.stream.server), (now, ""))
    # A later time was recorded before the clock was set back.
    if work.now < until <= work.now + 2 * AWAY_AGAIN:
        return StepContinues(now + AWAY_AGAIN, holding=error_text)
    try:
        if worker.run_slice(work):
            return StepPassed()
    except ServerUnavailable as error:
        return _hold_job(work, _handle_outage(work, error), str(error))
    except (ReplayHeld, ServerRefused) as error:
        return _hold_job(work, LOOK_AGAIN, str(error))
    seconds = work.limiter.seconds_to_wait(work.now.timestamp(), AT_ONCE)
    return StepContinues(work.now + timedelta(seconds=seconds))


def _handle_outage(work: ReplaySlice, error: ServerUnavailable) -> timedelta:
    """Handle a server that failed to respond; return the time until the job's next attempt.

    If the server responds to small calls, a failed attempt at the next letter is counted, otherwise
    an outage of the server is recorded.
    """
    stream = work.replay.stream
    try:
        if execution.is_responding(stream):
            worker.count_failed_try(work)
            return LOOK_AGAIN
    except (ServerUnavailable, ServerRefused):
        pass
    _away[servers.get_server(stream.server)] = work.now + AWAY_AGAIN, str(error)
    return AWAY_AGAIN


def _hold_job(work: ReplaySlice, pause: timedelta, why: str) -> StepContinues:
    change_notices.notify_changed("dlq", f"job:{work.turn.job.pk}")
    return StepContinues(work.now + pause, holding=why)


def _record_result(turn: LeasedJob, _step: JobStep, now: datetime, probe: Probe) -> StepPassed:
    """Record the job's result in its row, the audit trail and a message, in one transaction."""
    job = turn.job
    with turn.together():
        effects.record_effect(job, "record", now=now)
        replay = recount_removals(job.pk)
        turn.change(outcome=_describe_outcome(replay), heartbeat_at=now)
        breaker_gates.withdraw_gates(replay)
        _announce_result(replay, job, now)
        change_notices.notify_changed("dlq", f"job:{job.pk}", str(replay.stream))
        audit.record(
            actor=ACTOR,
            action=f"dead_letters.{'purged' if replay.action == PURGE else 'replayed'}",
            target=job.subject,
            reason=job.reason,
            after={"job": replay.pk, **_audit_summary(replay)},
            now=now,
        )
        probe("replay.recorded")
    return StepPassed()


def _give_up(turn: LeasedJob, _step: JobStep, now: datetime) -> None:
    """Clean up after a job that failed: count the letters it removed, and withdraw its gates."""
    with turn.together():
        turn.heartbeat(now)
        replay = recount_removals(turn.job.pk)
        breaker_gates.withdraw_gates(replay)
        change_notices.notify_changed("dlq", f"job:{turn.job.pk}", str(replay.stream))


@transaction.atomic
def _cancel(job: Job, reason: str, actor: Actor, now: datetime) -> None:
    """Cancel the job; only letters with an open removal intent are still removed.

    Open intents are settled twice: before the job is locked, since settling may take time, and
    after that, since more intents may have been declared meanwhile.
    """
    is_ended = _settle_open_intents(job, now)
    # No key lock: a worker that declares intents holds one while it waits for the stream's row.
    row = Job.objects.select_for_update(no_key=True).get(pk=job.pk)
    if not row.is_live:
        raise control.build_conflict(row, "be cancelled")
    before = row.state
    if is_ended:
        _settle_open_intents(row, now)
    replay = recount_removals(row.pk)
    outcome = f"Cancelled by {actor.label}: {reason.rstrip('.')}. {_describe_outcome(replay)}"
    over = {"state": Job.State.CANCELLED, "finished_at": now, "next_at": None}
    control.take_over(row, now, **over, outcome=outcome)
    breaker_gates.withdraw_gates(replay)
    endings.close_escalation(row, now)
    change_notices.notify_changed("dlq", f"job:{row.pk}")
    summary = _audit_summary(replay)
    endings.record_audit(row, "job.cancelled", now, reason, actor=actor, before=before, **summary)


def _settle_open_intents(job: Job, now: datetime) -> bool:
    """Settle the job's open intents; return False if some are left to the intent sweeper."""
    try:
        settle_open_intents(Replay.objects.select_related("stream").get(pk=job.pk), now)
    except (ReplayHeld, ServerUnavailable, ServerRefused):
        return False
    return True


def _describe_outcome(replay: Replay) -> str:
    counts = replay.counts
    parts = [f"{counts['done']:,} {DID[replay.action]}"]
    if counts["gone"]:
        parts.append(f"{counts['gone']:,} already gone")
    if counts["skipped"]:
        parts.append(f"{counts['skipped']:,} skipped ({_describe_skips(counts)})")
    return f"{', '.join(parts)}."


def _describe_skips(counts: dict[str, Any]) -> str:
    words = eligibility.SKIP_WORDS
    return ", ".join(f"{words.get(why, why)}: {count:,}" for why, count in counts["why"].items())


def _audit_summary(replay: Replay) -> dict[str, Any]:
    counts = replay.counts
    return {
        "action": replay.action,
        "filter": replay.chosen,
        **{name: counts[name] for name in ("done", "gone", "skipped", "why")},
        **({"approval": replay.approval_id} if replay.approval_id else {}),
    }


def _announce_result(replay: Replay, job: Job, now: datetime) -> None:
    approval = Approval.objects.filter(pk=replay.approval_id or 0).first()
    chosen = ", ".join(f"{name} {value}" for name, value in replay.chosen.items())
    facts = {
        "stream": str(replay.stream),
        "did": DID[replay.action],
        **{name: replay.counts[name] for name in ("done", "gone", "skipped")},
        "why": _describe_skips(replay.counts),
        "chosen": chosen or "everything",
        "by": approval.requested_by if approval else job.created_by,
        "approved_by": approval.decided_by if approval else "",
        "reason": job.reason,
        "path": job_path(job),
    }
    outbox.announce(
        event="dlq.purged" if replay.action == PURGE else "dlq.replayed",
        event_key=f"job:{job.pk}:recorded",
        subject=replay.stream.message_thread,
        resource=replay.stream.resource,
        facts=facts,
        now=now,
    )


def _get_resource(job: Job) -> str:
    return _load_replay(job).stream.resource


def _get_resumption(job: Job) -> Action:
    return settlement.REQUIRED[Departure.Action(_load_replay(job).action)]


def _load_replay(job: Job) -> Replay:
    return Replay.objects.select_related("stream").get(pk=job.pk)


def job_path(job: Job) -> str:
    return f"/dead-letters/jobs/{job.pk}/"


STEPS = (StepKind("replay", _run_replay, compensate=_give_up), StepKind("record", _record_result))

kinds.register(
    kinds.JobKind(
        name=KIND,
        title="Replay of dead letters",
        tick=TICK,
        work=stepwise.build_worker(STEPS),
        path=job_path,
        results=results.load_results,
        scope=SCOPE,
        resource=_get_resource,
        resumption=_get_resumption,
        interventions={"cancel": _cancel},
        most=AT_A_TIME,
    )
)
