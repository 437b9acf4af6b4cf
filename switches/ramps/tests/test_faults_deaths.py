"""A worker killed at any probe point of a transition: the next one finishes, each effect once.

Workers are processes and get a real SIGKILL; only their clock is the test's, so that a lease of 15
seconds expires at once. If no worker reaches a point, its test fails.
"""

import json
import os
import signal
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from django.db import connection

from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.gates.models import ExternalVerdict, Gate
from controlplane.core.jobs.claims import LEASE
from controlplane.core.jobs.models import Job, JobEffect, JobStep
from controlplane.core.outbox.models import OutboxMessage
from switches import services
from switches.models import Episode, Publication, Ramp
from switches.ramps.tests.ramp_helpers import SHELL

from .crashing_worker import Life, Nursery

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(90),
    pytest.mark.django_db(transaction=True),
]

PERCENTS = (5, 25, 100)
DWELL = 2
HOLD = 4
TICKS = 60
LATEST = LEASE.total_seconds() + 2
EVERY_TURN = ("ramp.claimed", "ramp.looked", "ramp.worked")
ADVANCE = ("locked", "claimed", "published", "notified", "committed")
POINTS = {
    "advance": (*EVERY_TURN, *(f"advance.{point}" for point in ADVANCE)),
    "complete": (
        *EVERY_TURN,
        *("advance.locked", "complete.claimed", "complete.notified", "advance.committed"),
    ),
    "compensate": (*EVERY_TURN, *(f"compensate.{point}" for point in ADVANCE)),
    "hold": (*EVERY_TURN, "hold.locked", "hold.claimed", "hold.notified", "hold.committed"),
}


@dataclass(frozen=True)
class Case:
    """A transition (`move`) at a step of a ramp, during which the worker is killed."""

    move: str
    step: int

    def __str__(self) -> str:
        return f"{self.move} at {PERCENTS[self.step]} %"

    def plan(self, gate: str) -> list[dict]:
        gates = {"compensate": self.step, "hold": self.step}
        gated = gates.get(self.move)
        return [
            {
                "percent": percent,
                "dwell_seconds": DWELL,
                "max_hold_seconds": HOLD,
                "gates": [{"type": "external", "gate": gate}] if index == gated else [],
            }
            for index, percent in enumerate(PERCENTS)
        ]

    @property
    def actions(self) -> list[str]:
        """Return the actions that the audit trail must list, in order."""
        if self.move in ("advance", "complete"):
            return ["switch.engaged", "ramp.started", *["ramp.advanced"] * 2, "switch.released"]
        held = ["ramp.held"] if self.move == "hold" else []
        gone = ["ramp.advanced"] * self.step
        return ["switch.engaged", "ramp.started", *gone, *held, "ramp.compensated"]

    @property
    def percents(self) -> list[float | None]:
        if self.move in ("advance", "complete"):
            return [0, *PERCENTS, None]
        held = [PERCENTS[self.step]] if self.move == "hold" else []
        return [0, *PERCENTS[: self.step + 1], *held, 0]


CASES = [
    *(Case("advance", step) for step in (0, 1)),
    Case("complete", 2),
    *(Case(move, step) for move in ("compensate", "hold") for step in (0, 1, 2)),
]


@pytest.fixture(scope="module")
def nurseries(django_db_setup):
    both_nurseries = [Nursery(connection.settings_dict) for _ in range(2)]
    yield both_nurseries
    for nursery in both_nurseries:
        nursery.end()


def begin(case: Case, name: str) -> Ramp:
    """Return a started ramp; to be compensated, its external gate fails in the case's step."""
    key = name.replace(".", "-")
    engaged = {"scope": "feature", "key": key, "actor": SHELL, "now": db_now()}
    services.engage(**engaged, reason="provider outage, 5xx since 02:10", expires_in="24h")
    now = db_now()
    released = {"scope": "feature", "key": key, "actor": SHELL, "now": now}
    gate = f"smoke-{key}"
    if case.move == "compensate":
        at = now + timedelta(seconds=case.step * (DWELL + 1) + 2)
        observation = {"verdict": "fail", "observed_at": at, "received_at": now, "by": "token:ci"}
        ExternalVerdict.objects.create(name=gate, **observation)
    done = services.release(
        **released, justification="cause fixed, verified twice", plan=case.plan(gate)
    )
    return done.ramp


def began(ramp: Ramp) -> datetime:
    return JobStep.objects.get(job=ramp.pk, index=0).started_at


def took(ramp: Ramp) -> list[float]:
    """Return the seconds from the ramp's start to the end of each finished step."""
    steps = JobStep.objects.filter(job=ramp.pk, finished_at__isnull=False).order_by("index")
    return [(step.finished_at - began(ramp)).total_seconds() for step in steps]


def assert_all_happened_once(case: Case, ramp: Ramp, version: int) -> None:
    """Assert that each audit row, publication, message and side effect of the ramp exists once.

    `version` is that of the snapshot before the ramp's switch was engaged.
    """
    job = Job.objects.get(pk=ramp.pk)
    rows = list(AuditEntry.objects.filter(target=ramp.switch_id).order_by("id"))
    after = [json.loads(row.after) for row in rows]
    assert [row.action for row in rows] == case.actions
    assert [entry.get("allow_percent") for entry in after] == case.percents
    published = [entry["version"] for entry in after]
    assert sorted(set(published)) == list(range(version + 1, published[-1] + 1))
    assert Publication.objects.get().version == published[-1]

    messages = OutboxMessage.objects.filter(event_key__in=[f"audit:{row.pk}" for row in rows])
    assert sorted(messages.values_list("event_key", flat=True)) == sorted(
        f"audit:{row.pk}" for row in rows
    )
    about = OutboxMessage.objects.filter(subject=f"episode:{ramp.episode_id}")
    assert about.count() == len(rows)
    last = ("release", 2) if case.move in ("advance", "complete") else ("compensate", case.step)
    keys = {f"ramp:{ramp.pk}:{step}:publish" for step in range(last[1] + 1)}
    effects = JobEffect.objects.filter(job=ramp.pk)
    assert {effect.key for effect in effects} == keys | {f"ramp:{ramp.pk}:{last[1]}:{last[0]}"}
    assert all(effect.done_at for effect in effects)

    episode = Episode.objects.get(pk=ramp.episode_id)
    through = case.move in ("advance", "complete")
    assert job.state == ("completed" if through else "cancelled")
    assert (episode.ended_at is not None) is through
    assert through or episode.allow_percent == 0
    assert not Ramp.objects.get(pk=ramp.pk).live
    assert not Gate.objects.exists()
    assert audit.verify().intact


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.usefixtures("destination")
def test_worker_killed_at_any_point_everything_happens_once_and_soon(case, nurseries):
    nursery, _ = nurseries
    undisturbed, life, _ = _run(case, nursery, "undisturbed")
    move_at = life.moved[case.step]
    assert {point for tick, point in life.points if tick == move_at} == set(POINTS[case.move])

    for point in POINTS[case.move]:
        ramp, first, version = _run(case, nursery, point, at=point, since=move_at)
        assert first.ended_by == "SIGKILL", f"nobody came to {point}"
        tick = first.points[-1][0]
        second = nursery.live(ramp.pk, began(ramp), ticks=range(tick + 1, TICKS))

        assert second.ended_by == ""
        assert_all_happened_once(case, ramp, version)
        late = [ours - theirs for ours, theirs in zip(took(ramp), took(undisturbed), strict=True)]
        print(f"{case}, killed at {point}: late by {', '.join(f'{each:.1f}' for each in late)} s")
        assert min(late) > -1.1
        assert max(late) <= LATEST


@pytest.mark.smoke
@pytest.mark.parametrize("case", [CASES[0], CASES[2], CASES[4], CASES[6]], ids=str)
@pytest.mark.usefixtures("destination")
def test_worker_stopped_for_longer_than_its_lease_writes_nothing(case, nurseries):
    nursery, another = nurseries
    _, life, _ = _run(case, nursery, "undisturbed")
    move_at = life.moved[case.step]

    for point in ("ramp.claimed", "ramp.looked"):
        stop = {"at": point, "since": move_at, "number": signal.SIGSTOP, "until": move_at + 1}
        ramp, stale, version = _run(case, nursery, point, **stop)
        assert stale.ended_by == "SIGSTOP"
        lease_over = move_at + int(LEASE.total_seconds())
        takes_over = another.live(ramp.pk, began(ramp), ticks=range(move_at + 1, lease_over + 2))
        assert len(takes_over.moved) == 1
        stood = Publication.objects.get().version, AuditEntry.objects.count()

        os.kill(stale.pid, signal.SIGCONT)
        stale.go_on()

        assert stale.ended_by == ""
        assert move_at not in stale.moved
        assert (Publication.objects.get().version, AuditEntry.objects.count()) == stood
        another.live(ramp.pk, began(ramp), ticks=range(lease_over + 2, TICKS))
        assert_all_happened_once(case, ramp, version)
        print(f"{case}: {Job.objects.get(pk=ramp.pk).duplicates_stopped} late writes stopped")


@pytest.mark.parametrize("case", [CASES[0], CASES[2]], ids=str)
@pytest.mark.usefixtures("destination")
def test_engage_wins_wherever_a_worker_died_or_stopped(case, nurseries):
    nursery, another = nurseries
    _, life, _ = _run(case, nursery, "undisturbed")
    stops = [("ramp.claimed", signal.SIGSTOP), ("ramp.looked", signal.SIGSTOP)]
    through = {"advance.committed", "ramp.worked"} if case.move == "complete" else set()

    for point, number in [*((each, signal.SIGKILL) for each in POINTS[case.move]), *stops]:
        name = f"{point}-{number.name.lower()}"
        death = {"at": point, "since": life.moved[case.step], "number": number}
        ramp, first, _ = _run(case, nursery, name, until=life.moved[case.step] + 1, **death)
        assert first.ended_by == number.name
        assert (Job.objects.get(pk=ramp.pk).state == "completed") is (point in through)

        switch = {"scope": "feature", "key": ramp.switch_id.partition(":")[2], "actor": SHELL}
        services.engage(
            **switch, now=db_now(), reason="5xx on completions since 03:05", expires_in="1h"
        )
        if number == signal.SIGSTOP:
            os.kill(first.pid, signal.SIGCONT)
            first.go_on()
        another.live(
            ramp.pk, began(ramp), ticks=range(first.points[-1][0] + 1, 30), to_the_end=True
        )

        open_ones = Episode.objects.filter(switch=ramp.switch_id, ended_at__isnull=True)
        assert [episode.allow_percent for episode in open_ones] == [0]
        last = AuditEntry.objects.filter(target=ramp.switch_id).latest("id")
        assert last.action == "switch.engaged"
        assert not Ramp.objects.get(pk=ramp.pk).live


def _run(
    case: Case, nursery: Nursery, name: str, *, until: int = TICKS, **death: object
) -> tuple[Ramp, Life, int]:
    version = Publication.objects.get().version
    ramp = begin(case, name)
    life = nursery.live(ramp.pk, began(ramp), ticks=range(1, until), **death)
    return ramp, life, version
