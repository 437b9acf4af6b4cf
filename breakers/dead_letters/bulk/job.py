"""The work of a bulk job over dead letters: let those leave that are meant, write down what came.

What keeps it from going on (a breaker that is open, a server that is away or refuses) holds it, and
fails it never: letters that wait are not lost.
"""

import contextlib
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from breakers.dead_letters import targets
from breakers.dead_letters.bulk import holding, replaying, tally
from breakers.dead_letters.bulk.replaying import Held
from breakers.dead_letters.bulk.replays import KIND, PURGE, RETRY, SCOPE
from breakers.dead_letters.bulk.selecting import AT_ONCE
from breakers.dead_letters.places.servers import ServerAway, ServerRefused
from breakers.models import Replay
from controlplane.core.actors import Actor, system
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.escalation import services as escalation
from controlplane.core.jobs import control, effects, endings, kinds, stepwise
from controlplane.core.jobs.claims import Turn
from controlplane.core.jobs.kinds import Probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.jobs.stepwise import Again, Passed, StepKind
from controlplane.core.live import notes
from controlplane.core.outbox import services as outbox

ACTOR = system("dead-letters")
LOOK_AGAIN = timedelta(seconds=2)
AT_A_TIME = 3
"""Jobs that one turn takes: each may take its seconds of one lease."""
WORDS = {
    "retried_too_often": "retried too often",
    "in_flight": "about to leave by somebody else",
    "too_many_fields": "too many fields",
    "too_large": "too large",
}
DID = {RETRY: "retried", "discard": "discarded", PURGE: "purged"}


def _replay(turn: Turn, step: JobStep, now: datetime, probe: Probe) -> Passed | Again:
    work = replaying.begin(turn, step, now, probe)
    try:
        if replaying.go_on(work):
            return Passed()
    except (Held, ServerAway, ServerRefused) as error:
        tally.recount(turn.job.pk)
        notes.changed("dlq", f"job:{turn.job.pk}")
        return Again(work.now + LOOK_AGAIN, holding=str(error))
    seconds = work.pace.wait(work.now.timestamp(), AT_ONCE)
    return Again(work.now + timedelta(seconds=seconds))


def _record(turn: Turn, _step: JobStep, now: datetime, probe: Probe) -> Passed:
    """What came of it, once: on the job, in the trail, and told."""
    job = turn.job
    with turn.together():
        effects.had(job, "record", now=now)
        replay = tally.recount(job.pk)
        turn.change(outcome=_outcome(replay), heartbeat_at=now)
        holding.end(replay)
        _announce(replay, job, now)
        notes.changed("dlq", f"job:{job.pk}", str(replay.stream))
        audit.record(
            actor=ACTOR,
            action=f"dead_letters.{'purged' if replay.action == PURGE else 'replayed'}",
            target=job.subject,
            reason=job.reason,
            after=_done(replay),
            now=now,
        )
        probe("replay.recorded")
    return Passed()


def _give_up(turn: Turn, _step: JobStep, now: datetime) -> None:
    """What has left stays where it went; nobody needs answers any more."""
    with turn.together():
        turn.heartbeat(now)
        replay = tally.recount(turn.job.pk)
        holding.end(replay)
        notes.changed("dlq", f"job:{turn.job.pk}", str(replay.stream))


@transaction.atomic
def _cancel(job: Job, reason: str, actor: Actor, now: datetime) -> None:
    """No further letter leaves but those that were about to; what has left stays where it went."""
    own = Replay.objects.select_related("stream").get(pk=job.pk)
    row = Job.objects.select_for_update().get(pk=job.pk)
    if not row.is_live:
        raise control.conflict(row, "be cancelled")
    before = row.state
    with contextlib.suppress(Held, ServerAway, ServerRefused):  # The clockwork carries it out then.
        replaying.settle_own(own, now)
    replay = tally.recount(row.pk)
    outcome = f"Cancelled by {actor.label}: {reason.rstrip('.')}. {_outcome(replay)}"
    over = {"state": Job.State.CANCELLED, "finished_at": now, "next_at": None}
    control.seize(row, now, **over, outcome=outcome)
    holding.end(replay)
    escalation.close(subject=endings.subject(row), now=now)
    notes.changed("dlq", f"job:{row.pk}")
    audit.record(
        actor=actor,
        action="job.cancelled",
        target=row.subject,
        reason=reason,
        before={"job": row.pk, "state": before},
        after={"kind": row.kind, "state": row.state, "step": row.step_index, **_done(replay)},
        now=now,
    )


def _outcome(replay: Replay) -> str:
    counts = replay.counts
    said = [f"{counts['done']:,} {DID[replay.action]}"]
    if counts["gone"]:
        said.append(f"{counts['gone']:,} gone meanwhile")
    if counts["skipped"]:
        said.append(f"{counts['skipped']:,} left where they were ({_why(counts)})")
    return f"{', '.join(said)}."


def _why(counts: dict[str, Any]) -> str:
    return ", ".join(
        f"{WORDS.get(name, name)}: {number:,}" for name, number in counts["why"].items()
    )


def _done(replay: Replay) -> dict[str, Any]:
    counts = replay.counts
    return {
        "job": replay.pk,
        "action": replay.action,
        "filter": replay.chosen,
        **{name: counts[name] for name in ("done", "gone", "skipped", "why")},
        **({"approval": replay.approval_id} if replay.approval_id else {}),
    }


def _announce(replay: Replay, job: Job, now: datetime) -> None:
    counts, approval = replay.counts, _approval(replay)
    chosen = ", ".join(f"{name} {value}" for name, value in replay.chosen.items())
    facts = {
        "stream": str(replay.stream),
        "did": DID[replay.action],
        **{name: counts[name] for name in ("done", "gone", "skipped")},
        "why": _why(counts),
        "chosen": chosen or "everything",
        "by": approval.requested_by if approval else job.created_by,
        "approved_by": approval.decided_by if approval else "",
        "reason": job.reason,
        "path": path(job),
    }
    outbox.announce(
        event="dlq.purged" if replay.action == PURGE else "dlq.replayed",
        event_key=f"job:{job.pk}:recorded",
        subject=targets.of(replay.stream, targets.LONGEST_SUBJECT),
        facts=facts,
        now=now,
    )


def _approval(replay: Replay) -> Approval | None:
    return Approval.objects.filter(pk=replay.approval_id).first() if replay.approval_id else None


def path(job: Job) -> str:
    """The page about one."""
    return f"/dead-letters/jobs/{job.pk}/"


STEPS = (StepKind("replay", _replay, compensate=_give_up), StepKind("record", _record))

kinds.register(
    kinds.Kind(
        name=KIND,
        title="Replay of dead letters",
        tick="dlq.jobs",
        work=stepwise.worker(STEPS),
        path=path,
        scope=SCOPE,
        interventions={"cancel": _cancel},
        most=AT_A_TIME,
    )
)
