"""Fixtures of a thousand simultaneous ramps, with the data that their gates need.

They are inserted directly, because the console's own functions would take minutes.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from . import fixtures

MIX = ("none", "external", "counted")
"""Keys of `GATES`, which the ramps have in turn."""
PERCENTS = (5, 25, 100)
DWELL_SECONDS = 3600
ENOUGH = 100
GATES: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "external": [{"type": "external", "gate": "smoke-{n}"}],
    "counted": [
        {"type": "samples", "slo": "availability-{n}"},
        {"type": "manual"},
        {"type": "slo", "slo": "availability-{n}"},
    ],
}
CLEARED = (
    "switches_ramp",
    "core_jobeffect",
    "core_jobstep",
    "core_job",
    "core_gate",
    "core_externalverdict",
    "core_eventcount",
    "core_outboxmessage",
    "core_approval",
    "core_escalation",
    "switches_episode",
    "switches_switch",
)


def create_ramps(count: int, now: datetime) -> dict[str, list[int]]:
    """Replace all ramps by `count` new ones started at `now`.

    Return the ids of their jobs by the kind of their gate, a key of `GATES`.
    """
    from controlplane.core.gates import services as gates
    from controlplane.core.gates.questions import GateQuestion
    from controlplane.core.jobs.models import Job, JobStep
    from switches.models import Ramp
    from switches.ramps.creation import KIND

    delete_ramps()
    kinds = [MIX[n % len(MIX)] for n in range(count)]
    with transaction.atomic():
        keys = [f"ramping-{n}" for n in range(count)]
        fields = {"engaged_version": 0, "allow_percent": PERCENTS[0]}
        episodes = fixtures.insert_switches(keys, count, now, **fields)
        jobs = Job.objects.bulk_create(
            Job(
                kind=KIND,
                subject=episode.switch_id,
                total=len(PERCENTS),
                reason="Benchmark",
                created_by="system:bench",
                created_at=now,
                started_at=now,
                next_at=now,
                heartbeat_at=now,
            )
            for episode in episodes
        )
        plans = [_plan(kind, n) for n, kind in enumerate(kinds)]
        Ramp.objects.bulk_create(
            Ramp(
                job=job,
                switch_id=episode.switch_id,
                episode=episode,
                plan=plan,
                justification="Benchmark",
                requested_by_type="system",
                requested_by_name="bench",
            )
            for job, episode, plan in zip(jobs, episodes, plans, strict=True)
        )
        JobStep.objects.bulk_create(
            _step(job, index, data, now)
            for job, plan in zip(jobs, plans, strict=True)
            for index, data in enumerate(plan)
        )
        gates.store_questions(
            [
                GateQuestion(f"ramp:{job.pk}:0:{number}", spec, now)
                for job, plan in zip(jobs, plans, strict=True)
                for number, spec in enumerate(plan[0]["gates"])
            ]
        )
    answer_gates("ok", now)
    _count(count, now)
    fixtures.analyze()
    return {
        kind: [job.pk for job, own in zip(jobs, kinds, strict=True) if own == kind] for kind in MIX
    }


def answer_gates(verdict: str, now: datetime) -> None:
    """Let gates pass, except external gates, which get the verdict `verdict`."""
    from controlplane.core.gates.models import ExternalVerdict, Gate
    from switches.models import Switch

    fields = {
        "verdict": verdict,
        "evidence": {"checks": 12},
        "observed_at": now,
        "received_at": now,
    }
    ExternalVerdict.objects.bulk_create(
        (
            ExternalVerdict(name=f"smoke-{n}", by="token:bench", **fields)
            for n in range(Switch.objects.count())
            if MIX[n % len(MIX)] == "external"
        ),
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=list(fields),
    )
    evidence = {"good": 5000, "total": 5000, "burn_rate": 0.0}
    Gate.objects.update(verdict="pass", evidence=evidence, observed_at=now)


def end_dwell(jobs: list[int], now: datetime) -> None:
    """End the dwell time of the current step of all ramps in `jobs` (job ids) at `now`."""
    from controlplane.core.jobs.models import JobStep

    JobStep.objects.filter(job__in=jobs, state=JobStep.State.RUNNING).update(due_at=now)


def create_target(now: datetime) -> None:
    """Create a notification target and route, so that ramp transitions write messages."""
    from controlplane.notify.models.targets import Route, Target

    target = Target.objects.create(
        name="bench", kind="channel", address="webhook", webhook_url="http://[::1]/", created_at=now
    )
    Route.objects.create(target=target, created_at=now)


def delete_ramps() -> None:
    """Delete all ramps, switches and related rows."""
    with connection.cursor() as cursor:
        for table in CLEARED:
            cursor.execute(f"DELETE FROM {table}")


def _plan(kind: str, number: int) -> list[dict[str, Any]]:
    from switches.ramps import plan

    gates = [{name: value.format(n=number) for name, value in gate.items()} for gate in GATES[kind]]
    step = {"dwell_seconds": DWELL_SECONDS, "gates": gates}
    return plan.read_plan([{"percent": percent, **step} for percent in PERCENTS])


def _step(job: Any, index: int, data: dict[str, Any], now: datetime) -> Any:
    from controlplane.core.jobs.models import JobStep
    from switches.ramps import descriptions

    step = JobStep(
        job=job, index=index, name=descriptions.format_percent(data["percent"]), data=data
    )
    if index == 0:
        step.state, step.attempts = JobStep.State.RUNNING, 1
        step.started_at, step.due_at = now, now + timedelta(seconds=DWELL_SECONDS)
    return step


def _count(count: int, now: datetime) -> None:
    """Store enough events for those of `count` ramps whose gate needs a minimum sample.

    The events come from five instances.
    """
    from controlplane.core.gates.models import EventCount

    ended = now + timedelta(seconds=1)
    EventCount.objects.bulk_create(
        EventCount(
            slo=f"availability-{n}",
            instance=f"bench/{instance}",
            began_at=now,
            ended_at=ended,
            good=ENOUGH,
            total=ENOUGH,
        )
        for n in range(count)
        if MIX[n % len(MIX)] == "counted"
        for instance in range(5)
    )
