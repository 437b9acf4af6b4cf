"""The work of a drill: look who is there, engage, wait, release, wait, write down what was found.

Every step may be begun again by another worker at any line; a step that publishes does it once, by
the drill's own row. A drill that can't pass any more still goes through its steps, so that it is
released and written down in one way. Whatever breaks is taken back: released, and told as failed.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from controlplane.core.actors import Actor, system
from controlplane.core.errors import Conflict
from controlplane.core.jobs import kinds, stepwise
from controlplane.core.jobs.claims import Turn
from controlplane.core.jobs.control import PlannedStep
from controlplane.core.jobs.kinds import Probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.jobs.stepwise import Again, Passed, StepKind
from switches.drills import live, moves, reach
from switches.drills.ending import cancel
from switches.drills.patterns import Marks
from switches.models import Drill

APPLIED_WITHIN = timedelta(seconds=60)
LOOK_AGAIN = timedelta(milliseconds=500)
ACTOR = system("drills")
NOBODY = (
    "No marked instance was heard from within 30 seconds: nobody polls under a marked name. "
    "Look at the marks, and whether the instances run."
)
SKIPPED = Passed({"skipped": True})


def _look(turn: Turn, _step: JobStep, now: datetime, _probe: Probe) -> Passed:
    """Who is there to be stopped; without anybody a drill would prove nothing."""
    with transaction.atomic():
        drill = moves.lock_row(turn.job.pk)
        turn.heartbeat(now)
        found = reach.there(reach.marks(), now)
        named = {"instances": len(found), "names": found[: reach.NAMED]}
        moves.measure(drill, "look", named, why="" if found else NOBODY)
        return Passed(named)


def _engage(turn: Turn, _step: JobStep, now: datetime, probe: Probe) -> Passed:
    """Publish it for the marked instances; a switch that is really stopped by now is left alone."""
    with transaction.atomic():
        locked = moves.lock(turn.job.pk)
        turn.heartbeat(now)
        drill = locked.drill
        if drill.engaged_at is not None:
            return Passed()
        episode = locked.switch.episode
        if episode is not None and not live.why_not(drill):
            moves.measure(drill, "look", drill.measured.get("look", {}), why=stopped(episode.state))
        if live.why_not(drill):
            return SKIPPED
        moves.engage(locked, now)
        probe("drill.engaged.written")
        version = drill.engaged_version
        moves.note("drill.engaged", locked.switch, drill, ACTOR, now, version=version)
    return Passed({"version": version})


def _engaged_applied(turn: Turn, _step: JobStep, now: datetime, probe: Probe) -> Passed | Again:
    drill = Drill.objects.get(pk=turn.job.pk)
    if drill.released_at is not None:
        return SKIPPED
    return _applied(turn, "engage", drill, now, probe)


def _release(turn: Turn, _step: JobStep, now: datetime, probe: Probe) -> Passed:
    with transaction.atomic():
        locked = moves.lock(turn.job.pk)
        turn.heartbeat(now)
        if not moves.release(locked, now):
            return Passed() if locked.drill.released_version else SKIPPED
        probe("drill.released.written")
        version = locked.drill.released_version
        moves.note("drill.released", locked.switch, locked.drill, ACTOR, now, version=version)
    return Passed({"version": version})


def _released_applied(turn: Turn, _step: JobStep, now: datetime, probe: Probe) -> Passed | Again:
    return _applied(turn, "release", Drill.objects.get(pk=turn.job.pk), now, probe)


def _applied(turn: Turn, part: str, drill: Drill, now: datetime, probe: Probe) -> Passed | Again:
    """Wait until everybody whom it stopped says that they apply the version, at most a minute."""
    version, since = drill.engaged_version, drill.engaged_at
    if part == "release":
        version, since = drill.released_version, drill.released_at
    if version is None or since is None:
        return SKIPPED
    stopped_by = drill.measured.get(live.MARKED, [])
    found = reach.of(Marks.of(stopped_by), version, since)
    probe(f"drill.{part}.looked")
    # Not in the turn that published it: its time is before that. And no clock is trusted for long.
    if abs(now - since) < APPLIED_WITHIN and (now < since or not found.by_everybody):
        return Again(now + LOOK_AGAIN)
    with transaction.atomic():
        drill = moves.lock_row(turn.job.pk)
        if drill.measured.get(live.MARKED, []) != stopped_by:
            return Again(now + LOOK_AGAIN)  # Somebody was let go meanwhile.
        turn.heartbeat(now)
        late = part == "engage" and drill.ends_by is not None and now >= drill.ends_by
        why = _late(part) if late else _unproven(part, found)
        moves.measure(drill, part, found.as_dict(), why=why)
    return Passed(found.as_dict())


def _record(turn: Turn, _step: JobStep, now: datetime, probe: Probe) -> Passed:
    """What came of it; here alone a switch becomes proven."""
    with transaction.atomic():
        locked = moves.lock(turn.job.pk)
        turn.change(outcome=moves.said(locked.drill), heartbeat_at=now)
        if locked.drill.live:
            passed = not live.why_not(locked.drill)
            moves.end(locked.switch, locked.drill, turn.job, passed=passed, actor=ACTOR, now=now)
            probe("drill.ended.written")
    return Passed()


def _release_again(turn: Turn, _step: JobStep, now: datetime) -> None:
    """A later step broke: everybody is told the same again."""
    with transaction.atomic():
        locked = moves.lock(turn.job.pk)
        turn.heartbeat(now)
        if moves.release(locked, now):
            version = locked.drill.released_version
            moves.note("drill.released", locked.switch, locked.drill, ACTOR, now, version=version)


def _give_up(turn: Turn, _step: JobStep, now: datetime) -> None:
    """All is taken back: it has failed, by what went wrong."""
    with transaction.atomic():
        locked = moves.lock(turn.job.pk)
        drill = locked.drill
        if not drill.live:
            return
        drill.measured = {live.WHY: f"It broke: {turn.job.error}", **drill.measured}
        drill.save(update_fields=["measured"])
        turn.change(outcome=moves.said(drill), heartbeat_at=now)
        moves.end(locked.switch, drill, turn.job, passed=False, actor=ACTOR, now=now)


LOOK = StepKind("look", _look, compensate=_give_up)
LIVE_STEPS = (
    LOOK,
    StepKind("engage", _engage, compensate=_release_again),
    StepKind("engaged_applied", _engaged_applied),
    StepKind("release", _release),
    StepKind("released_applied", _released_applied),
    StepKind("record", _record),
)
DRY_STEPS = (LOOK, StepKind("record", _record))
_live_work, _dry_work = stepwise.worker(LIVE_STEPS), stepwise.worker(DRY_STEPS)


def planned(mode: str) -> list[PlannedStep]:
    """The steps of a drill, before it begins."""
    return [PlannedStep(step.name) for step in (DRY_STEPS if mode == live.DRY else LIVE_STEPS)]


def work(turns: Sequence[Turn], now: datetime, probe: Probe) -> int:
    """Go on with drills; those that are dry have fewer steps."""
    ours = [turn.job.pk for turn in turns]
    dry = set(Drill.objects.filter(pk__in=ours, mode=live.DRY).values_list("pk", flat=True))
    moved = _live_work([turn for turn in turns if turn.job.pk not in dry], now, probe)
    return moved + _dry_work([turn for turn in turns if turn.job.pk in dry], now, probe)


def stopped(state: str) -> str:
    """Why a switch that is not released isn't drilled."""
    return f"The switch is {state}: what is real is proven by its own effect."


def _late(part: str) -> str:
    return f"Whoever ran the drill came back too late to see it ({part}); it had ended by itself."


def _unproven(part: str, found: reach.Reach) -> str:
    if found.by_everybody:
        return ""
    if not found.instances:
        return f"No marked instance is left ({part})."
    behind = found.instances - found.applied
    named = ", ".join(found.stragglers[:5]) + ("…" if behind > 5 else "")
    return (
        f"{behind:,} of {found.instances:,} did not say within {APPLIED_WITHIN.seconds} seconds "
        f"that they apply it ({part}): {named}."
    )


def _not_paused(_job: Job, _reason: str, _actor: Actor, _now: datetime) -> None:
    raise Conflict("A drill takes a minute or two; it can't be paused. Cancel it instead.")


kinds.register(
    kinds.Kind(
        name=live.KIND,
        title="Drill",
        tick="jobs.turn",
        work=work,
        path=lambda job: f"/drills/#drill-{job.pk}",
        interventions={"cancel": cancel, "pause": _not_paused},
        tells_failures=True,
    )
)
